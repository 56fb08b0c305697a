#include "functional/encoder_embeddings/fused.h"

#include <ATen/Parallel.h>
#include <ATen/ops/linear.h>

#include <algorithm>

#include "functional/dispatch.h"
#include "functional/dropout/generator.h"
#include "functional/encoder_embeddings/backward.h"
#include "kernels/dispatch.h"
#include "torch_internals/fresh_memory.h"
#include "torch_internals/profiled.h"

namespace posenc::functional {
namespace {

namespace kernel = kernels::embed;

constexpr int64_t kEmbeddingsGrain = 16384;  // elements that are worth a task of their own

using RunEmbeddings = void (*)(const kernel::EmbeddingsRequest&, int64_t, int64_t);

// Draws the dropout bits, and runs the kernel on tokens whose bits have been drawn.
void run_and_drop(RunEmbeddings run, EncoderEmbeddingsPlan& plan, double p, at::Tensor& mask) {
  kernel::EmbeddingsRequest& q = plan.request;
  const int64_t elements = q.tokens * q.dim;
  mask = torch_internals::fresh_output({mask_bytes(elements)}, at::kByte);
  q.kept = {mask.const_data_ptr<uint8_t>(), kept_factor(1.0 - p, at::kFloat)};
  DropoutBits bits(1.0 - p, at::kFloat, mask.data_ptr<uint8_t>());
  if (!worth_threads(elements)) {
    bits.draw(elements);
    return run(q, 0, q.tokens);
  }
  const int64_t chunk = 64 * std::max<int64_t>(1, kEmbeddingsGrain / (64 * q.dim));  // in tokens
  draw_while_used(bits, elements, chunk * q.dim,
                  [&](int64_t begin, int64_t end) { run(q, begin / q.dim, end / q.dim); });
}

void run_plainly(RunEmbeddings run, const kernel::EmbeddingsRequest& q) {
  if (!worth_threads(q.tokens * q.dim)) return run(q, 0, q.tokens);
  at::parallel_for(0, q.tokens, std::max<int64_t>(1, kEmbeddingsGrain / q.dim),
                   [&](int64_t begin, int64_t end) { run(q, begin, end); });
}

at::Tensor one_pass(EncoderEmbeddingsPlan& plan, const at::Tensor& ids,
                    const EncoderEmbeddingsWeights& weights, double p) {
  const torch_internals::Profiled profiled("posenc::encoder_embeddings", ids, weights.tokens);
  kernel::EmbeddingsRequest& q = plan.request;
  at::DimVector sizes(ids.sizes());
  sizes.push_back(q.dim);
  const at::Tensor out = torch_internals::fresh_output(sizes, at::kFloat);
  q.out = out.data_ptr<float>();
  EmbeddingsSaved saved;
  if (plan.records_norm) {
    saved.sum = torch_internals::fresh_output(sizes, at::kFloat);
    sizes.back() = 1;
    saved.mean = torch_internals::fresh_output(sizes, at::kFloat);
    saved.rstd = torch_internals::fresh_output(sizes, at::kFloat);
    q.norm.sum = saved.sum.data_ptr<float>();
    q.norm.mean = saved.mean.data_ptr<float>();
    q.norm.rstd = saved.rstd.data_ptr<float>();
  }
  const RunEmbeddings run =
      kernels::chosen().embeddings.embeddings[static_cast<int>(plan.rounding)];
  plan.drops ? run_and_drop(run, plan, p, saved.mask) : run_plainly(run, q);
  if (plan.records_tables || plan.records_norm) record(out, plan, weights, saved);
  return out;
}

}  // namespace

at::Tensor encoder_embeddings_fused(EncoderEmbeddingsPlan& plan, const at::Tensor& ids,
                                    const EncoderEmbeddingsWeights& weights,
                                    const EncoderEmbeddingsFuncOptions& options) {
  const at::Tensor x = one_pass(plan, ids, weights, options.dropout());
  if (!plan.projects) return x;
  return at::linear(x, weights.projection_weight, weights.projection_bias);
}

}  // namespace posenc::functional
