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

// The rows (H, R, Dh) of the stack's table for the projection of keys or queries, times the scale
// of the scores; undefined without one. By posenc's own product, whose bits do not depend on the
// number of threads.
at::Tensor position_heads(const DisentangledAttentionImpl& attention, const char* name,
                          PositionProjection PositionProjections::*which, StackFreezer& stack) {
  const RelativeEmbeddingsImpl& embeddings = *stack.encoder.relative_embeddings.ptr();
  const PositionProjection projection = position_projections(attention, embeddings.weight).*which;
  if (!projection.weight.defined()) return {};
  const int64_t heads = attention.options.num_heads();
  const int64_t width = attention.options.embed_dim() / heads;
  const at::Tensor rows = stack.convert.computed(
      attention.in_proj_weight, name, {heads, embeddings.weight.size(0), width}, [&] {
        const Projection own(projection.weight, projection.bias, kAlwaysNative);
        return (own.rows(stack.relative_table().detach()) * static_cast<float>(attention.scale()))
            .unflatten(-1, {heads, -1})
            .transpose(0, 1)
            .contiguous();
      });
  stack.convert.derived(embeddings.weight, static_cast<int64_t>(rows.nbytes()));
  return rows;
}

}  // namespace

Block freeze_step(const DisentangledAttentionImpl& own, StackFreezer& stack) {
  WeightConverter& convert = stack.convert;
  const int64_t heads = own.options.num_heads();
  // The layers have rows of positions in place of what they are computed from.
  stack.leave_out(blocks::get(stack.encoder.relative_embeddings));
  stack.leave_out(blocks::get(own.pos_key));
  stack.leave_out(blocks::get(own.pos_query));
  DisentangledStep step = {
      {.sizes = {heads, heads, own.options.embed_dim() / heads},
       .scoring = {static_cast<float>(own.scale()), convert.attention_products()},
       .in_proj = convert.projection(own.in_proj_weight, own.in_proj_bias),
       .out_proj = linear(*own.out_proj, convert),
       .window = stack.window()},
      position_heads(own, "position_keys", &PositionProjections::keys, stack),
      position_heads(own, "position_queries", &PositionProjections::queries, stack)};
  const DisentangledOptions& positions = *stack.encoder.options.layer().disentangled();
  return stack.layers.mixers<DisentangledMixers>(positions.index()).add(std::move(step));
}

}  // namespace posenc::inference
