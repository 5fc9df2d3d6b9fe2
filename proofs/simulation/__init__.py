"""The whole gateway on a simulated machine: one seed is one run, and a failure replays.

    python -m proofs.simulation --seeds 10000            many runs; the seeds that fail are printed
    python -m proofs.simulation --seed 1234 --trace      one of them again, event by event

Real: every line of the gateway, SQLite, the journal's files (on a memory file system).
Simulated: time, randomness, the order in which I/O arrives, threads, the network, what a disk keeps, signals
and crashes. CONTRIBUTING.md says what is left out.
"""
