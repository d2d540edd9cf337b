"""Work that goes on: goals, threads, heartbeats and what leaves the machine, all of it durable."""
