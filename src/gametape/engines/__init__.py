"""Where tokens come from: model servers, scripted policies, weights on this machine; and how a model is spoken to."""
