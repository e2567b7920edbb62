"use strict";
// Decoders on typed arrays: a list of layers, as axiswise.exploration describes them, and its exact derivatives.
//
// A value is a list of blocks: what a layer gives, and its derivative in each of some directions (forward mode). Linear
// layers treat every block alike, except that the bias belongs to the first; others multiply by their slope.

const decoder = (() => {
  /** The bytes of a base64 text. */
  function bytes(text) {
    const characters = atob(text);
    const found = new Uint8Array(characters.length);
    for (let i = 0; i < found.length; i++) found[i] = characters.charCodeAt(i);
    return found;
  }

  /** The number that 16 bits stand for: IEEE 754 binary16. */
  function half(word) {
    const exponent = (word >> 10) & 31;
    const fraction = word & 1023;
    const size = exponent === 0 ? fraction * 2 ** -24 : exponent === 31 ? (fraction ? NaN : Infinity)
      : (1 + fraction / 1024) * 2 ** (exponent - 15);
    return word & 32768 ? -size : size;
  }

  /** Numbers of 16 bits, little-endian: floating-point numbers, or whole ones, each times a scale. */
  function numbers(raw, { start = 0, size = raw.length / 2, scale = 1, whole = false } = {}) {
    return Float64Array.from({ length: size }, (_, i) => {
      const word = raw[2 * (start + i)] | (raw[2 * (start + i) + 1] << 8);
      return (whole ? (word << 16) >> 16 : half(word)) * scale;
    });
  }

  /** erf, by its series near zero and the continued fraction of erfc elsewhere. */
  function erf(x) {
    const a = Math.abs(x);
    if (a < 2.5) {
      let term = x, sum = x;
      for (let n = 1; Math.abs(term) > 1e-17 * Math.abs(sum); n++) {
        term *= -x * x / n;
        sum += term / (2 * n + 1);
      }
      return 2 / Math.sqrt(Math.PI) * sum;
    }
    let fraction = a;
    for (let n = 40; n > 0; n--) fraction = a + n / 2 / fraction;
    return Math.sign(x) * (1 - Math.exp(-a * a) / (fraction * Math.sqrt(Math.PI)));
  }

  const sigmoid = (x) => (x >= 0 ? 1 / (1 + Math.exp(-x)) : Math.exp(x) / (1 + Math.exp(x)));
  const softplus = (x) => (x > 30 ? x : Math.log1p(Math.exp(x)));

  // Each activation by PyTorch's name: its value and its slope at x, from the parameters of its layer.
  const ACTIVATIONS = {
    relu: () => [(x) => (x > 0 ? x : 0), (x) => (x > 0 ? 1 : 0)],
    leaky_relu: ({ negative_slope: a }) => [(x) => (x > 0 ? x : a * x), (x) => (x > 0 ? 1 : a)],
    elu: ({ alpha: a }) => [(x) => (x > 0 ? x : a * Math.expm1(x)), (x) => (x > 0 ? 1 : a * Math.exp(x))],
    celu: ({ alpha: a }) => [(x) => (x > 0 ? x : a * Math.expm1(x / a)), (x) => (x > 0 ? 1 : Math.exp(x / a))],
    selu: () => {
      const a = 1.6732632423543772, s = 1.0507009873554805;
      return [(x) => s * (x > 0 ? x : a * Math.expm1(x)), (x) => s * (x > 0 ? 1 : a * Math.exp(x))];
    },
    gelu: ({ approximate }) => {
      if (approximate === "tanh") {
        const c = Math.sqrt(2 / Math.PI);
        const inner = (x) => Math.tanh(c * (x + 0.044715 * x ** 3));
        return [(x) => 0.5 * x * (1 + inner(x)), (x) => {
          const t = inner(x);
          return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * c * (1 + 3 * 0.044715 * x * x);
        }];
      }
      const below = (x) => 0.5 * (1 + erf(x / Math.SQRT2));
      return [(x) => x * below(x), (x) => below(x) + x * Math.exp(-x * x / 2) / Math.sqrt(2 * Math.PI)];
    },
    silu: () => [(x) => x * sigmoid(x), (x) => sigmoid(x) * (1 + x * sigmoid(-x))],
    mish: () => [(x) => x * Math.tanh(softplus(x)), (x) => {
      const t = Math.tanh(softplus(x));
      return t + x * (1 - t * t) * sigmoid(x);
    }],
    tanh: () => [Math.tanh, (x) => 1 - Math.tanh(x) ** 2],
    sigmoid: () => [sigmoid, (x) => sigmoid(x) * sigmoid(-x)],
    logsigmoid: () => [(x) => -softplus(-x), (x) => sigmoid(-x)],
    softplus: ({ beta: b, threshold: t }) => [
      (x) => (b * x > t ? x : softplus(b * x) / b), (x) => (b * x > t ? 1 : sigmoid(b * x))],
    softsign: () => [(x) => x / (1 + Math.abs(x)), (x) => (1 + Math.abs(x)) ** -2],
    hardtanh: ({ min_val: a, max_val: b }) => [(x) => Math.min(Math.max(x, a), b), (x) => (x > a && x < b ? 1 : 0)],
    hardsigmoid: () => [(x) => Math.min(Math.max(x / 6 + 0.5, 0), 1), (x) => (x > -3 && x < 3 ? 1 / 6 : 0)],
    hardswish: () => [(x) => x * Math.min(Math.max(x / 6 + 0.5, 0), 1),
      (x) => (x <= -3 ? 0 : x >= 3 ? 1 : x / 3 + 0.5)],
    exp: () => [Math.exp, Math.exp],
    sin: () => [Math.sin, Math.cos],
    cos: () => [Math.cos, (x) => -Math.sin(x)],
  };

  /** Applies a function to the first block, and its slope to the others. */
  function elementwise(value, slope, blocks) {
    const at = blocks[0], found = blocks.map(() => new Float64Array(at.length));
    for (let i = 0; i < at.length; i++) {
      found[0][i] = value(at[i], i);
      if (blocks.length > 1) {
        const factor = slope(at[i], i);
        if (factor !== 0) for (let k = 1; k < blocks.length; k++) found[k][i] = factor * blocks[k][i];
      }
    }
    return found;
  }

  /** For each output place along an axis, the taps of the kernel that reach it and the input places they read. */
  function sources(layer, axis) {
    const [inputs, outputs] = [layer.source[axis + 1], layer.target[axis + 1]];
    const [stride, padding, dilation] = [layer.stride[axis], layer.padding[axis], layer.dilation[axis]];
    return Array.from({ length: outputs }, (_, out) => {
      const found = [];
      for (let tap = 0; tap < layer.kernel[axis]; tap++) {
        const place = layer.transposed ? (out + padding - tap * dilation) / stride : out * stride - padding + tap * dilation;
        if (Number.isInteger(place) && place >= 0 && place < inputs) found.push([tap, place]);
      }
      return found;
    });
  }

  /** Rows of weights, filled up with zeros. */
  function widened(weight, size, wide) {
    const rows = weight.length / size, found = new Float64Array(rows * wide);
    for (let row = 0; row < rows; row++) found.set(weight.subarray(row * size, (row + 1) * size), row * wide);
    return found;
  }

  /**
   * Convolutions, transposed or not, and dense layers, which are convolutions of one place. Weights lie as group, tap,
   * input, output. Inputs that are zero, as half of them are after a ReLU, are left out; eight outputs are summed at a
   * time, so that sums stay in registers. Where there are fewer, the rest have weights of zero.
   */
  function convolution(layer) {
    const [inputs, height, width] = layer.source, [outputs, rows, columns] = layer.target, [down, across] = layer.kernel;
    const groups = layer.groups, each = inputs / groups, outputsEach = outputs / groups, places = height * width;
    const fromRow = sources(layer, 0), fromColumn = sources(layer, 1), { bias } = layer, area = rows * columns;
    const wide = 8 * Math.ceil(outputsEach / 8), weight = widened(layer.weight, outputsEach, wide);
    const values = new Float64Array(places * each), offsets = new Int32Array(places * each), ends = new Int32Array(places);
    return ([blocks]) => blocks.map((block, number) => {
      const found = new Float64Array(outputs * area);
      for (let group = 0; group < groups; group++) {
        for (let place = 0; place < places; place++) {
          let end = place * each;
          for (let input = 0; input < each; input++) {
            const value = block[(group * each + input) * places + place];
            if (value !== 0) {
              values[end] = value;
              offsets[end++] = input * wide;
            }
          }
          ends[place] = end;
        }
        const origin = group * down * across * each * wide;
        for (let row = 0; row < rows; row++) {
          for (let column = 0; column < columns; column++) {
            for (let output = 0; output < outputsEach; output += 8) {
              let a = 0, b = 0, c = 0, d = 0, e = 0, f = 0, g = 0, h = 0;
              for (const [y, fromY] of fromRow[row]) {
                for (const [x, fromX] of fromColumn[column]) {
                  const base = origin + (y * across + x) * each * wide + output, place = fromY * width + fromX;
                  const end = ends[place];
                  for (let n = place * each; n < end; n++) {
                    const value = values[n], own = base + offsets[n];
                    a += value * weight[own];
                    b += value * weight[own + 1];
                    c += value * weight[own + 2];
                    d += value * weight[own + 3];
                    e += value * weight[own + 4];
                    f += value * weight[own + 5];
                    g += value * weight[own + 6];
                    h += value * weight[own + 7];
                  }
                }
              }
              const sums = [a, b, c, d, e, f, g, h], channel = group * outputsEach + output;
              for (let k = 0; k < 8 && output + k < outputsEach; k++) {
                found[(channel + k) * area + row * columns + column] = sums[k];
              }
            }
          }
        }
      }
      if (bias && number === 0) for (let i = 0; i < found.length; i++) found[i] += bias[Math.floor(i / area)];
      return found;
    });
  }

  /** Batch norm in evaluation mode: a line for each channel. */
  function channelwise(layer) {
    const { mean, variance, weight, bias, eps, places } = layer;
    const slope = Float64Array.from(mean, (_, c) => (weight ? weight[c] : 1) / Math.sqrt(variance[c] + eps));
    const shift = Float64Array.from(mean, (m, c) => (bias ? bias[c] : 0) - m * slope[c]);
    const channel = (i) => Math.floor(i / places) % mean.length;
    return ([blocks]) => elementwise((x, i) => x * slope[channel(i)] + shift[channel(i)], (_, i) => slope[channel(i)], blocks);
  }

  /** Group, instance and layer norm: parts of the input to mean 0 and variance 1, then a line for each weight. */
  function standardised(layer) {
    const { size, weight, bias, eps, places } = layer;
    return ([blocks]) => {
      const found = blocks.map((block) => new Float64Array(block.length));
      for (let start = 0; start < blocks[0].length; start += size) {
        const part = blocks.map((block) => block.subarray(start, start + size));
        const mean = average(part[0], () => 1);
        let squares = 0;
        for (let i = 0; i < size; i++) squares += (part[0][i] - mean) ** 2;
        const deviation = Math.sqrt(squares / size + eps);
        for (let k = 0; k < part.length; k++) {
          const tangentMean = average(part[k], () => 1);
          const along = k ? average(part[k], (i) => (part[0][i] - mean) / deviation) : 0;
          for (let i = 0; i < size; i++) {
            const own = Math.floor((start + i) / places) % (weight ? weight.length : 1), scale = weight ? weight[own] : 1;
            const unit = (part[0][i] - mean) / deviation;
            const value = k ? (part[k][i] - tangentMean - unit * along) / deviation : unit;
            found[k][start + i] = value * scale + (k === 0 && bias ? bias[own] : 0);
          }
        }
      }
      return found;
    };
  }

  function average(block, factor) {
    let sum = 0;
    for (let i = 0; i < block.length; i++) sum += block[i] * factor(i);
    return sum / block.length;
  }

  /** Interpolation, average pooling, padding, cropping and repetition: each axis by itself, a few weighted places for each output. */
  function resample(layer) {
    const [channels, height, width] = layer.source, { rows, columns } = layer;
    return ([blocks]) => blocks.map((block) => {
      const wide = new Float64Array(channels * height * columns.length);
      for (let line = 0; line < channels * height; line++) {
        columns.forEach((taps, x) => {
          for (const [from, share] of taps) wide[line * columns.length + x] += share * block[line * width + from];
        });
      }
      const found = new Float64Array(channels * rows.length * columns.length);
      for (let channel = 0; channel < channels; channel++) {
        rows.forEach((taps, y) => {
          for (const [from, share] of taps) {
            const source = (channel * height + from) * columns.length, target = (channel * rows.length + y) * columns.length;
            for (let x = 0; x < columns.length; x++) found[target + x] += share * wide[source + x];
          }
        });
      }
      return found;
    });
  }

  /** Softmax along an axis: eᵗ / Σ eᵗ, and s ⊙ (t − Σ s t) of a derivative t. */
  function softmax(layer) {
    const { size, places } = layer;
    return ([blocks]) => {
      const found = blocks.map((block) => new Float64Array(block.length));
      for (let start = 0; start < blocks[0].length; start += size * places) {
        for (let place = start; place < start + places; place++) {
          const own = Array.from({ length: size }, (_, i) => place + i * places);
          const largest = Math.max(...own.map((i) => blocks[0][i]));
          const total = own.reduce((sum, i) => sum + Math.exp(blocks[0][i] - largest), 0);
          for (const i of own) found[0][i] = Math.exp(blocks[0][i] - largest) / total;
          for (let k = 1; k < blocks.length; k++) {
            const mean = own.reduce((sum, i) => sum + found[0][i] * blocks[k][i], 0);
            for (const i of own) found[k][i] = found[0][i] * (blocks[k][i] - mean);
          }
        }
      }
      return found;
    };
  }

  /** Blocks one after the other. */
  function concatenate() {
    return (values) => values[0].map((_, k) => {
      const parts = values.map((blocks) => blocks[k]);
      const found = new Float64Array(parts.reduce((sum, part) => sum + part.length, 0));
      let start = 0;
      for (const part of parts) {
        found.set(part, start);
        start += part.length;
      }
      return found;
    });
  }

  /** Axes in another order. */
  function permute(layer) {
    const { source: from, order } = layer, size = from.reduce((a, b) => a * b, 1);
    const steps = from.map((_, axis) => from.slice(axis + 1).reduce((a, b) => a * b, 1));
    const place = new Int32Array(size), to = order.map((axis) => from[axis]);
    for (let i = 0; i < size; i++) {
      let left = i;
      for (let axis = order.length - 1; axis >= 0; axis--) {
        place[i] += (left % to[axis]) * steps[order[axis]];
        left = Math.floor(left / to[axis]);
      }
    }
    return ([blocks]) => blocks.map((block) => Float64Array.from(place, (own) => block[own]));
  }

  /** One function for each kind of layer: from its description to a function of its inputs. */
  const KINDS = {
    convolution,
    batch_norm: channelwise,
    norm: standardised,
    resample,
    permute,
    softmax,
    concatenate,
    constant: ({ value }) => ([blocks]) => blocks.map((_, k) => (k ? new Float64Array(value.length) : value)),
    activation: (layer) => {
      const [value, slope] = ACTIVATIONS[layer.name](layer);
      return ([blocks]) => elementwise(value, slope, blocks);
    },
    prelu: ({ weight, places }) => {
      const own = (i) => weight[Math.floor(i / places) % weight.length];
      return ([blocks]) => elementwise((x, i) => (x > 0 ? x : own(i) * x), (x, i) => (x > 0 ? 1 : own(i)), blocks);
    },
    affine: ({ scale, shift }) => ([blocks]) => elementwise((x) => scale * x + shift, () => scale, blocks),
    first: ({ size }) => ([blocks]) => blocks.map((block) => block.slice(0, size)),
    add: () => ([one, other]) => one.map((block, k) => block.map((x, i) => x + other[k][i])),
    multiply: () => ([one, other]) => one.map((block, k) => block.map((x, i) => (
      k ? x * other[0][i] + one[0][i] * other[k][i] : x * other[0][i]))),
  };

  /** A decoder that runs, from its description. */
  function prepare({ layers, weights }) {
    const raw = bytes(weights);
    return layers.map((layer) => {
      const arrays = Object.fromEntries(Object.entries(layer.tensors || {}).map(([name, place]) => [name, numbers(raw, place)]));
      return { inputs: layer.inputs, run: KINDS[layer.kind]({ ...layer, ...arrays }) };
    });
  }

  /** What a prepared decoder makes of z, and its derivatives in some directions. */
  function run(prepared, z, directions = []) {
    const values = [[z, ...directions].map((block) => Float64Array.from(block))];
    for (const layer of prepared) values.push(layer.run(layer.inputs.map((input) => values[input])));
    const [value, ...derivatives] = values[values.length - 1];
    return { value, derivatives };
  }

  return { bytes, numbers, prepare, run };
})();
