"""Layer-wise inversion: every layer's weights and gradients as equations for its input."""
