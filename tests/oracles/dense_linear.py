"""R-GAP written out with matrices: the slow, obvious way, for nets of float64.

A convolution becomes the matrix with one row an output value; its weight gradient becomes the
matrix with one row a weight. Both are stacked and solved by the singular value decomposition.
"""

import numpy as np
import torch


def patches(shape, kernel, stride, padding):
    """Which input value every tap of every output position sees, -1 where that is padding.

    (channels × taps, positions), in the order in which PyTorch flattens weights and maps.
    """
    channels, height, width = shape
    down = (height + 2 * padding[0] - kernel[0]) // stride[0] + 1
    right = (width + 2 * padding[1] - kernel[1]) // stride[1] + 1
    found = np.full((channels * kernel[0] * kernel[1], down * right), -1)
    for row in range(len(found)):
        channel, tap = divmod(row, kernel[0] * kernel[1])
        for place in range(down * right):
            y = (place // right) * stride[0] - padding[0] + tap // kernel[1]
            x = (place % right) * stride[1] - padding[1] + tap % kernel[1]
            if 0 <= y < height and 0 <= x < width:
                found[row, place] = (channel * height + y) * width + x
    return found


def matrices(weight, slope, shape, stride, padding):
    """W and K of U = [W; K] (COPA, Eq. 4), each with one column an input value."""
    outputs = len(weight)
    seen = patches(shape, weight.shape[2:], stride, padding)
    taps, positions = seen.shape
    size = int(np.prod(shape))
    by_output = np.zeros((outputs, positions, size))
    by_weight = np.zeros((outputs, taps, size))
    kernels, slopes = weight.reshape(outputs, -1), slope.reshape(outputs, -1)
    for tap in range(taps):
        for place in range(positions):
            if seen[tap, place] >= 0:
                by_output[:, place, seen[tap, place]] += kernels[:, tap]
                by_weight[:, tap, seen[tap, place]] += slopes[:, place]
    return by_output.reshape(-1, size), by_weight.reshape(-1, size)


def undone(layer, x):
    """The inverse of an activation and its slope there; None is no activation."""
    if layer is None:
        return x, np.ones_like(x)
    edge = 1 - np.finfo(x.dtype).eps
    if isinstance(layer, torch.nn.Tanh):
        z = np.arctanh(x.clip(-edge, edge))
        return z, 1 - np.tanh(z) ** 2
    if isinstance(layer, torch.nn.Sigmoid):
        x = x.clip(1 - edge, edge)
        return np.log(x / (1 - x)), x * (1 - x)
    share = layer.negative_slope
    return np.where(x > 0, x, x / share), np.where(x > 0, 1.0, share)


def dense_recursion(convolutions, activations, shape, head, gradients):
    """What the first layer sees, (C, H, W), as R-GAP finds it.

    convolutions: nn.Conv2d layers of float64; activations: the layer behind each, or None;
    head: nn.Linear with bias; gradients: of all parameters in the model's order.
    """
    arrays = [gradient.detach().double().numpy() for gradient in gradients]
    head_weight, head_bias = arrays[-2], arrays[-1]
    row = np.abs(head_bias).argmax()
    x = head_weight[row] / head_bias[row]  # Eq. 9
    pulled = head.weight.detach().numpy().T @ head_bias
    leaked, shapes = _by_layer(convolutions, arrays, shape)
    for place in range(len(convolutions) - 1, -1, -1):
        layer = convolutions[place]
        z, bend = undone(activations[place], x)
        slope = pulled * bend
        weight = layer.weight.detach().numpy()
        W, K = matrices(weight, slope, shapes[place], layer.stride, layer.padding)
        if layer.bias is not None:
            z = z - np.repeat(layer.bias.detach().numpy(), len(z) // len(weight))
        target = np.concatenate([z, leaked[place].ravel()])
        x = np.linalg.lstsq(np.concatenate([W, K]), target, rcond=None)[0]
        pulled = W.T @ slope
    return torch.from_numpy(x).view(shape)


def _by_layer(convolutions, arrays, shape):
    """The weight gradient of each convolution and the shape that it sees."""
    leaked, shapes, place = [], [], 0
    example = torch.zeros(1, *shape, dtype=torch.float64)
    for layer in convolutions:
        shapes.append(tuple(example.shape[1:]))
        leaked.append(arrays[place])
        place += 1 if layer.bias is None else 2
        example = layer(example)
    return leaked, shapes
