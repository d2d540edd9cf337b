"""Tokens come from the stated distribution, and say how likely they were in it."""

import math

import pytest

torch = pytest.importorskip("torch")

from hypothesis import given, settings  # noqa: E402
from hypothesis import strategies as st  # noqa: E402

from gametape.core.messages import Sampling  # noqa: E402
from gametape.engines.torch.sampler import sample_tokens, token_logprobs, uniform  # noqa: E402

IDS = [2, 0, 3, 1]
"""Tokens by rank, so that ranks and ids differ."""
LOGITS = torch.empty(4)
LOGITS[IDS] = torch.tensor([0.5, 0.25, 0.15, 0.1]).log() + 3


@pytest.mark.parametrize(
    ("sampling", "kept"),
    [
        ({}, [0.5, 0.25, 0.15, 0.1]),
        ({"top_k": 2}, [2 / 3, 1 / 3, 0, 0]),
        ({"top_p": 0.7}, [2 / 3, 1 / 3, 0, 0]),
        ({"top_p": 0.1}, [1, 0, 0, 0]),
        ({"top_k": 3, "top_p": 0.8}, [2 / 3, 1 / 3, 0, 0]),
        ({"temperature": 0.5}, [50 / 69, 12.5 / 69, 4.5 / 69, 2 / 69]),
    ],
)
def test_log_probabilities_are_those_of_the_distribution_drawn_from(sampling, kept):
    rounds = 4000
    numbers = uniform(torch.full((rounds,), 7), torch.arange(rounds))
    tokens, logp = sample_tokens(LOGITS.repeat(rounds, 1), [Sampling(**sampling)] * rounds, numbers)
    for token, p in zip(IDS, kept, strict=True):
        assert abs(float((tokens == token).float().mean()) - p) < 0.03
        assert all(math.isclose(value, p, rel_tol=1e-4) for value in logp[tokens == token].exp().tolist())


@settings(deadline=None)
@given(
    st.lists(
        st.builds(
            Sampling,
            temperature=st.sampled_from([0.0, 0.3, 1.0]),
            top_p=st.sampled_from([0.3, 0.95, 1.0]),
            top_k=st.sampled_from([0, 1, 7, 5000]),
        ),
        min_size=1,
        max_size=6,
    ),
    st.integers(0, 100),
)
def test_rows_do_not_mix(samplings, seed):
    """More tokens than are sorted at first, flat enough that top p needs them."""
    rows = len(samplings)
    logits = torch.randn(rows, 3000, generator=torch.Generator().manual_seed(seed))
    numbers = uniform(torch.full((rows,), seed), torch.arange(rows))
    tokens, logp = sample_tokens(logits, samplings, numbers)
    for at, sampling in enumerate(samplings):
        token, alone = sample_tokens(logits[at : at + 1], [sampling], numbers[at : at + 1])
        assert (int(token), float(alone)) == (int(tokens[at]), pytest.approx(float(logp[at]), abs=1e-5))
    torch.testing.assert_close(token_logprobs(logits, tokens, samplings), logp)


def test_what_cannot_be_drawn_is_not_drawn_even_at_the_ends():
    logits = torch.tensor([[-torch.inf, 0.0, -torch.inf, 0.0, -torch.inf]])
    for number, token in ((0.0, 1), (0.4999, 1), (0.5, 3), (1 - 2**-53, 3)):
        assert int(sample_tokens(logits, [Sampling()], torch.tensor([number], dtype=torch.float64))[0]) == token


def test_random_numbers_depend_on_seed_and_position_alone_and_fill_the_interval():
    seeds, positions = torch.randint(0, 2**63 - 1, (2, 5000))
    numbers = uniform(seeds, positions)
    assert torch.equal(numbers[7:8], uniform(seeds[7:8], positions[7:8]))
    assert 0 <= float(numbers.min()) < 0.01
    assert 0.99 < float(numbers.max()) < 1
    in_a_row = uniform(torch.full((5000,), 3), torch.arange(5000))
    assert abs(float(in_a_row.mean()) - 0.5) < 0.02
    assert abs(float(torch.corrcoef(torch.stack((in_a_row[1:], in_a_row[:-1])))[0, 1])) < 0.05


def test_what_has_no_weight_is_never_drawn():
    """Not at the borders of the pieces in which the vocabulary is searched, and not behind its end."""
    logits = torch.full((7, 1000), -torch.inf)
    logits[:, [255, 511, 700]] = 0.0
    numbers = torch.tensor(
        [0.0, 1 / 3, 1 / 3 - 1e-9, 1 / 3 + 1e-9, 2 / 3, 2 / 3 + 1e-9, 1 - 2**-53], dtype=torch.float64
    )
    tokens, _ = sample_tokens(logits, [Sampling()] * 7, numbers)
    assert set(tokens.tolist()) <= {255, 511, 700}
    assert tokens[0] == 255
    assert tokens[-1] == 700


def test_of_equals_the_first_is_the_likeliest():
    logits = torch.zeros(2, 1000)
    logits[1, [300, 600]] = 1.0
    tokens, _ = sample_tokens(logits, [Sampling(temperature=0)] * 2, torch.zeros(2, dtype=torch.float64))
    assert tokens.tolist() == [0, 300]
