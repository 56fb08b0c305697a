#include "functional/embedding_front/fused.h"

#include <ATen/Parallel.h>
#include <ATen/ops/linear.h>

#include <algorithm>

#include "functional/dispatch.h"
#include "functional/dropout/generator.h"
#include "functional/embedding_front/backward.h"
#include "kernels/dispatch.h"
#include "torch_internals/fresh_memory.h"
#include "torch_internals/profiled.h"

namespace posenc::functional {
namespace {

namespace kernel = kernels::embed;

constexpr int64_t kFrontGrain = 16384;  // elements that are worth a task of their own

using RunFront = void (*)(const kernel::FrontRequest&, int64_t, int64_t);

// Draws the dropout bits, and runs the kernel on tokens whose bits have been drawn.
void run_and_drop(RunFront run, EmbeddingFrontPlan& plan, double p, at::Tensor& mask) {
  kernel::FrontRequest& q = plan.request;
  const int64_t elements = q.tokens * q.dim;
  mask = torch_internals::fresh_output({mask_bytes(elements)}, at::kByte);
  q.kept = {mask.const_data_ptr<uint8_t>(), kept_factor(1.0 - p, at::kFloat)};
  DropoutBits bits(1.0 - p, at::kFloat, mask.data_ptr<uint8_t>());
  if (!worth_threads(elements)) {
    bits.draw(elements);
    return run(q, 0, q.tokens);
  }
  const int64_t chunk = 64 * std::max<int64_t>(1, kFrontGrain / (64 * q.dim));  // in tokens
  draw_while_used(bits, elements, chunk * q.dim,
                  [&](int64_t begin, int64_t end) { run(q, begin / q.dim, end / q.dim); });
}

void run_plainly(RunFront run, const kernel::FrontRequest& q) {
  if (!worth_threads(q.tokens * q.dim)) return run(q, 0, q.tokens);
  at::parallel_for(0, q.tokens, std::max<int64_t>(1, kFrontGrain / q.dim),
                   [&](int64_t begin, int64_t end) { run(q, begin, end); });
}

at::Tensor one_pass(EmbeddingFrontPlan& plan, const at::Tensor& ids,
                    const EmbeddingFrontWeights& weights, double p) {
  const torch_internals::Profiled profiled("posenc::embedding_front", ids, weights.tokens);
  kernel::FrontRequest& q = plan.request;
  at::DimVector sizes(ids.sizes());
  sizes.push_back(q.dim);
  const at::Tensor out = torch_internals::fresh_output(sizes, at::kFloat);
  q.out = out.data_ptr<float>();
  FrontSaved saved;
  if (plan.records_norm) {
    saved.sum = torch_internals::fresh_output(sizes, at::kFloat);
    sizes.back() = 1;
    saved.mean = torch_internals::fresh_output(sizes, at::kFloat);
    saved.rstd = torch_internals::fresh_output(sizes, at::kFloat);
    q.norm.sum = saved.sum.data_ptr<float>();
    q.norm.mean = saved.mean.data_ptr<float>();
    q.norm.rstd = saved.rstd.data_ptr<float>();
  }
  const RunFront run = kernels::chosen().front.front[static_cast<int>(plan.rounding)];
  plan.drops ? run_and_drop(run, plan, p, saved.mask) : run_plainly(run, q);
  if (plan.records_tables || plan.records_norm) record(out, plan, weights, saved);
  return out;
}

}  // namespace

at::Tensor embedding_front_fused(EmbeddingFrontPlan& plan, const at::Tensor& ids,
                                 const EmbeddingFrontWeights& weights,
                                 const EmbeddingFrontFuncOptions& options) {
  const at::Tensor x = one_pass(plan, ids, weights, options.dropout());
  if (!plan.projects) return x;
  return at::linear(x, weights.projection_weight, weights.projection_bias);
}

}  // namespace posenc::functional
