// DeBERTa's attention.

#include <ATen/ops/arange.h>
#include <ATen/ops/index_select.h>

#include <algorithm>

#include "inference/layers/relative_mixers.h"
#include "transformer/attention/position_projections.h"

namespace posenc::inference {
namespace {

// A DisentangledAttention. Its rows of positions are computed once: they are the products of the
// table with projections, and do not depend on the input.
struct DisentangledStep : RelativeStep {
  at::Tensor position_keys, position_queries;  // (H, R, Dh), or undefined
};

class DisentangledMixers : public StepMixers<DisentangledStep> {
 public:
  explicit DisentangledMixers(relative::Index index) : index(std::move(index)) {}
  std::unique_ptr<MixerRun> begin(const BatchRows& batch) const override;

  const relative::Index index;
};

class DisentangledRun : public RelativeRun<DisentangledMixers> {
 public:
  DisentangledRun(const DisentangledMixers& own, const BatchRows& batch) : RelativeRun(own, batch) {
    const bool has_positions =
        std::any_of(own.steps.begin(), own.steps.end(), [](const DisentangledStep& step) {
          return step.position_keys.defined() || step.position_queries.defined();
        });
    if (has_positions)
      rows_of_distances_ = relative_index(at::arange(-reach_, reach_ + 1, at::kLong), own.index);
  }

 private:
  PositionHeads positions(std::size_t step) const override {
    const DisentangledStep& own = own_.steps[step];
    return {by_distance(own.position_keys), by_distance(own.position_queries), reach_};
  }

  // The rows of all distances of this batch: a copy, since many may share one.
  at::Tensor by_distance(const at::Tensor& rows) const {
    return rows.defined() ? at::index_select(rows, 1, rows_of_distances_) : rows;
  }

  at::Tensor rows_of_distances_;  // (2 reach + 1), of the table
};

std::unique_ptr<MixerRun> DisentangledMixers::begin(const BatchRows& batch) const {
  return std::make_unique<DisentangledRun>(*this, batch);
}

// The rows (H, R, Dh) of a table, times the scale of the scores. By posenc's own product, whose
// bits do not depend on the number of threads.
at::Tensor position_heads(const at::Tensor& table, const PositionProjection& projection,
                          int64_t heads, float scale) {
  if (!projection.weight.defined()) return {};
  const Projection own(projection.weight, projection.bias, kAlwaysNative);
  return (own.rows(table.detach()) * scale).unflatten(-1, {heads, -1}).transpose(0, 1).contiguous();
}

}  // namespace

Block freeze_step(const DisentangledAttentionImpl& own, StackFreezer& stack) {
  WeightConverter& convert = stack.convert;
  const RelativeEmbeddingsImpl& embeddings = *stack.encoder.relative_embeddings.ptr();
  const int64_t heads = own.options.num_heads();
  const auto scale = static_cast<float>(own.scale());
  const at::Tensor& table = stack.relative_table();
  const auto [keys, queries] = position_projections(own, table);
  DisentangledStep step = {{.sizes = {heads, heads, own.options.embed_dim() / heads},
                            .scoring = {scale, convert.attention_products()},
                            .in_proj = convert.projection(own.in_proj_weight, own.in_proj_bias),
                            .out_proj = linear(*own.out_proj, convert),
                            .window = stack.window()},
                           position_heads(table, keys, heads, scale),
                           position_heads(table, queries, heads, scale)};
  // The layers have rows of positions in place of what they are computed from.
  stack.leave_out(&embeddings);
  for (const at::Tensor& rows : {step.position_keys, step.position_queries}) {
    if (rows.defined()) convert.derived(embeddings.weight, static_cast<int64_t>(rows.nbytes()));
  }
  stack.leave_out(blocks::get(own.pos_key));
  stack.leave_out(blocks::get(own.pos_query));
  const DisentangledOptions& positions = *stack.encoder.options.layer().disentangled();
  return stack.layers.mixers<DisentangledMixers>(positions.index()).add(std::move(step));
}

}  // namespace posenc::inference
