"""Carl Allen, *Unpicking data at the seams: VAEs, disentanglement and independent components*, 2024."""
