"""Mathieu, Rainforth, Siddharth and Teh, *Disentangling disentanglement in variational autoencoders*, ICML 2019."""
