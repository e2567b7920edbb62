"use strict";
// The geometry of a decoder at a point, from G = JᵀJ: distance to orthogonality and the share off the diagonal. They are
// axiswise.geometry's dto and column_coherence, to rounding.

const geometry = (() => {
  /** Eigenvectors of a symmetric matrix, as columns: Jacobi's rotations, until nothing is left off the diagonal. */
  function eigenvectors(matrix) {
    const size = matrix.length, a = matrix.map((row) => Float64Array.from(row));
    const v = a.map((_, i) => Float64Array.from(a, (_, j) => Number(i === j)));
    const whole = Math.hypot(...a.map((row) => Math.hypot(...row)));
    for (let sweep = 0; sweep < 60; sweep++) {
      let off = 0;
      for (let i = 0; i < size; i++) for (let j = 0; j < i; j++) off += a[i][j] ** 2;
      if (Math.sqrt(off) <= 1e-15 * whole) break;
      for (let p = 0; p < size; p++) {
        for (let q = p + 1; q < size; q++) {
          if (a[p][q] === 0) continue;
          const slope = (a[q][q] - a[p][p]) / (2 * a[p][q]);
          const t = (slope < 0 ? -1 : 1) / (Math.abs(slope) + Math.hypot(1, slope)), c = 1 / Math.hypot(1, t), s = t * c;
          for (let k = 0; k < size; k++) [a[k][p], a[k][q]] = [c * a[k][p] - s * a[k][q], s * a[k][p] + c * a[k][q]];
          for (let k = 0; k < size; k++) [a[p][k], a[q][k]] = [c * a[p][k] - s * a[q][k], s * a[p][k] + c * a[q][k]];
          for (let k = 0; k < size; k++) [v[k][p], v[k][q]] = [c * v[k][p] - s * v[k][q], s * v[k][p] + c * v[k][q]];
        }
      }
    }
    return v;
  }

  /** The largest sum of one entry in each row and column: the assignment problem, by shortest augmenting paths. */
  function assigned(gains) {
    const size = gains.length, rowPrice = new Float64Array(size + 1), columnPrice = new Float64Array(size + 1);
    const rowOf = new Int32Array(size + 1).fill(-1); // of each column; the last is where a path begins
    for (let row = 0; row < size; row++) {
      const shortest = new Float64Array(size).fill(Infinity), before = new Int32Array(size).fill(size);
      const done = new Uint8Array(size + 1);
      let column = size;
      rowOf[size] = row;
      while (rowOf[column] >= 0) {
        done[column] = 1;
        const own = rowOf[column];
        let step = Infinity, next = -1;
        for (let j = 0; j < size; j++) {
          if (done[j]) continue;
          const cost = -gains[own][j] - rowPrice[own] - columnPrice[j];
          if (cost < shortest[j]) [shortest[j], before[j]] = [cost, column];
          if (shortest[j] < step) [step, next] = [shortest[j], j];
        }
        for (let j = 0; j <= size; j++) {
          if (done[j]) {
            rowPrice[rowOf[j]] += step;
            columnPrice[j] -= step;
          } else if (j < size) {
            shortest[j] -= step;
          }
        }
        column = next;
      }
      for (; column !== size; column = before[column]) rowOf[column] = rowOf[before[column]];
      rowOf[size] = -1;
    }
    let total = 0;
    for (let j = 0; j < size; j++) total += gains[rowOf[j]][j];
    return total;
  }

  /** Distance of the eigenvectors of G from the nearest signed permutation; NaN without latents, or beyond numbers. */
  function distanceToOrthogonality(gram) {
    if (!gram.length || !gram.every((row) => row.every(Number.isFinite))) return NaN;
    const sizes = eigenvectors(gram).map((row) => Array.from(row, Math.abs));
    return Math.sqrt(Math.max(0, 2 * gram.length - 2 * assigned(sizes)));
  }

  /** ‖G − diag G‖ / ‖G‖. */
  function offDiagonalShare(gram) {
    let off = 0, whole = 0;
    gram.forEach((row, i) => row.forEach((value, j) => {
      whole += value * value;
      if (i !== j) off += value * value;
    }));
    return Math.sqrt(off / whole);
  }

  /** JᵀJ from the columns of J, of some latents. */
  function gramOf(columns) {
    return columns.map((one) => columns.map((other) => {
      let sum = 0;
      for (let i = 0; i < one.length; i++) sum += one[i] * other[i];
      return sum;
    }));
  }

  /** R G Rᵀ for a rotation of two of the latents by an angle: what G becomes when the latents are rotated. */
  function rotated(gram, first, second, angle) {
    const c = Math.cos(angle), s = Math.sin(angle), found = gram.map((row) => Float64Array.from(row));
    for (const row of found) [row[first], row[second]] = [c * row[first] - s * row[second], s * row[first] + c * row[second]];
    [found[first], found[second]] = [
      found[first].map((value, k) => c * value - s * found[second][k]),
      found[first].map((value, k) => s * value + c * found[second][k]),
    ];
    return found.map((row) => Array.from(row));
  }

  return { distanceToOrthogonality, gramOf, offDiagonalShare, rotated };
})();
