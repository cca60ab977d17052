"""Hostile input: from users, and to NICs from the network and from hosts.

User input: options, settings, TOML, samples, checkpoints, stores. An attack and a seed reproduce a
try. A try passes if the command did its work (status 0 or 1), or rejected the input in one line
(status 2). Any other end is a defect.

Input of NICs: storms of frames and messages beside the traffic of a run, on the compiled engine. A
storm is an attack, a cluster, a seed and a length.
"""
