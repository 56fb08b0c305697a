// Transformer-XL's attention.

#include <ATen/ops/index_select.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>

#include "inference/attention/distance_keys.h"
#include "inference/layers/relative_mixers.h"
#include "transformer/attention/segments.h"
#include "transformer/layers/transformer_xl_rows.h"

namespace posenc::inference {
namespace {

constexpr const char* kFrozenEncoder = "FrozenTransformerEncoder";

// A TransformerXLAttention: its queries have the content_bias already.
struct TransformerXLStep : RelativeStep {
  at::Tensor key_bias;      // (H, Dh), beside the keys of distances
  at::Tensor segment_bias;  // (H, Dh), undefined without segments
  at::Tensor segment_keys;  // (H, 2, Dh), scaled, the same
};

class TransformerXLMixers : public StepMixers<TransformerXLStep> {
 public:
  explicit TransformerXLMixers(const TransformerXLOptions& options)
      : options(options), distances(options) {}
  // Throws the errors of FrozenTransformerEncoder for segments and bi_data.
  std::unique_ptr<MixerRun> begin(const BatchRows& batch) const override;

  const TransformerXLOptions options;
  DistanceKeys distances;  // of each step
};

// The segment of each row, kLong; undefined for undefined segments (B, L).
at::Tensor packed_segments(const at::Tensor& segments, const Packing& packing) {
  if (!segments.defined()) return {};
  const at::Tensor all = segments.to(at::kLong).flatten();
  return packing.packed ? at::index_select(all, 0, at::tensor(packing.positions, at::kLong))
                        : all.contiguous();
}

class TransformerXLRun : public RelativeRun<TransformerXLMixers> {
 public:
  TransformerXLRun(const TransformerXLMixers& own, const BatchRows& batch)
      : RelativeRun(own, batch),
        keys_(own.distances.up_to(reach_)),
        segments_(packed_segments(batch.inputs.segments, batch.packing)) {}

 private:
  PositionHeads positions(std::size_t step) const override {
    const TransformerXLStep& own = own_.steps[step];
    PositionHeads positions = {.keys = keys_->layers[step], .queries = {}, .reach = keys_->reach};
    if (own_.options.bi_data()) positions.backward_keys = positions.keys.flip(1);
    positions.key_bias = own.key_bias;
    if (!segments_.defined()) return positions;
    positions.segments = segments_;
    positions.segment_keys = own.segment_keys;
    positions.segment_bias = own.segment_bias;
    return positions;
  }

  const std::shared_ptr<const DistanceKeys::Keys> keys_;
  const at::Tensor segments_;
};

std::unique_ptr<MixerRun> TransformerXLMixers::begin(const BatchRows& batch) const {
  check_bi_data(kFrozenEncoder, options, batch.packing.batch);
  check_segments(kFrozenEncoder, batch.inputs.segments, batch.packing.batch, batch.packing.length);
  return std::make_unique<TransformerXLRun>(*this, batch);
}

// The projection to queries with their content_bias, keys and values.
Projection in_projection_of(const TransformerXLAttentionImpl& attention, WeightConverter& convert) {
  const int64_t width = attention.options.embed_dim();
  at::Tensor bias = attention.in_proj_bias.defined() ? attention.in_proj_bias.detach().clone()
                                                     : at::zeros({3 * width}, at::kFloat);
  convert.derived(attention.in_proj_bias, 0);
  convert.derived(attention.content_bias, static_cast<int64_t>(bias.nbytes()));
  bias.narrow(0, 0, width).add_(attention.content_bias.detach().view({width}));
  return convert.projection(attention.in_proj_weight, bias);
}

}  // namespace

Block freeze_step(const TransformerXLAttentionImpl& own, StackFreezer& stack) {
  WeightConverter& convert = stack.convert;
  for (const at::Tensor& source : {own.position_bias, own.segment_bias, own.segment_embed}) {
    if (source.defined()) convert.derived(source, static_cast<int64_t>(source.nbytes()));
  }
  convert.derived(stack.encoder.shifted_positions->mask_emb, 0);  // which no layer reads
  const int64_t heads = own.options.num_heads();
  const at::Tensor content = own.content_bias.detach();
  TransformerXLStep step = {
      {.sizes = {heads, heads, own.options.embed_dim() / heads},
       .scoring = {static_cast<float>(own.scale()), convert.attention_products()},
       .in_proj = in_projection_of(own, convert),
       .out_proj = linear(*own.out_proj, convert),
       .window = stack.window()},
      (own.position_bias.detach() - content).contiguous(),
      {},
      {}};
  if (own.segment_embed.defined()) {
    step.segment_bias = (own.segment_bias.detach() - content).contiguous();
    step.segment_keys = (own.segment_embed.detach().transpose(0, 1) * own.scale()).contiguous();
  }
  auto& all =
      stack.layers.mixers<TransformerXLMixers>(*stack.encoder.options.layer().transformer_xl());
  all.distances.add(own.position_proj->weight, step.sizes.heads, step.scoring.scale);
  return all.add(std::move(step));
}

}  // namespace posenc::inference
