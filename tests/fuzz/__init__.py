"""Hostile input: of the user's side, and of NICs from network and host.

The user's: options, settings, TOML, samples, checkpoints, stores. Every try is an attack and a
seed, which give it again. A try ends well where the command did its work (status 0 or 1), or
refused it in one line (status 2); all else is a defect.

Of NICs: storms of frames and messages beside those of a run, on the compiled engine. A storm is
an attack, a cluster, a seed and a length.
"""
