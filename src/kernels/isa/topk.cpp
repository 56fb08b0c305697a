// Log-sum-exp of a row of logits, and its top entries. Compiled once per instruction set.
//
// The reference paths are at::logsumexp and at::topk.
#include <math.h>

#include "kernels/isa/by_sixteen.h"
#include "kernels/isa/exponential.h"
#include "kernels/isa/tables.h"

namespace posenc::kernels::inference::POSENC_ISA {
namespace {

// Logits i .. i + n - 1, padded with -inf.
POSENC_INLINE Wide read_logits(const float* from, int64_t n) {
  float padded[kWide];
  for (float& one : padded) one = -__builtin_inff();
  memcpy(padded, from, sizeof(float) * static_cast<size_t>(n));
  return load_wide(padded);
}

LogSum log_sum_exp(const float* x, int64_t n) {
  Wide most = each([](int) { return broadcast(-__builtin_inff()); });
  by_sixteen(n, [&](int64_t i, int64_t count) {
    const Wide w = read_logits(x + i, count);
    most = each([&](int part) { return maximum(most.part[part], w.part[part]); });
  });
  float lanes[kWide], largest = -__builtin_inff();
  write(lanes, most, kWide);
  for (const float one : lanes) largest = one > largest ? one : largest;
  if (largest == -__builtin_inff()) largest = 0.0f;  // all logits are -inf or NaN
  Wide sum = {};
  by_sixteen(n, [&](int64_t i, int64_t count) {
    const Wide w = read_logits(x + i, count);
    sum = each(
        [&](int part) { return sum.part[part] + exponential(w.part[part] - broadcast(largest)); });
  });
  return {largest, logf(total(sum))};
}

// Inserts it after entries of equal score.
void insert(TopkEntry one, TopkEntry* best, int64_t count) {
  int64_t i = count - 1;
  for (; i > 0 && one.score > best[i - 1].score; --i) best[i] = best[i - 1];
  best[i] = one;
}

void topk_insert(const float* x, int64_t n, float shift, float base, int64_t first_index,
                 TopkEntry* best, int64_t count) {
  by_sixteen(n, [&](int64_t i, int64_t some) {
    const Wide w = read_logits(x + i, some);
    bool any = false;
    for (const Floats& part : w.part)
      any = any || greater((part - broadcast(shift)) + broadcast(base),
                           broadcast(best[count - 1].score)) != 0;
    for (int64_t j = i; any && j < i + some; ++j) {
      const float score = (x[j] - shift) + base;
      if (score > best[count - 1].score) insert({score, first_index + j}, best, count);
    }
  });
}

}  // namespace

const TopkKernels topk_kernels = {log_sum_exp, topk_insert};

}  // namespace posenc::kernels::inference::POSENC_ISA
