"""DLRM in numpy, the reference: embedding tables, MLPs, interaction, training, checkpoints."""
