#include <ostream>

#include "core/print_fields.h"
#include "inference/freeze/checks.h"
#include "inference/freeze/model.h"
#include "inference/rows/frozen_scope.h"
#include "posenc/inference/freeze.h"
#include "transformer/functional/attention_mask_internals.h"
#include "transformer/layers/layer_parts.h"

namespace posenc {

using inference::Packing;
using torch_internals::CallThreads, torch_internals::Operations;

namespace {

// Positions of each token, or of each of its axes.
void check_position_ids(bool axial, const torch::Tensor& position_ids, int64_t batch,
                        int64_t length) {
  TORCH_CHECK_VALUE(position_ids.defined() || !axial,
                    "[FrozenTransformerEncoder] an axial rotary embedding needs position_ids");
  if (!position_ids.defined()) return;
  const int64_t axes = axial ? 1 : 0, dim = position_ids.dim() - axes;
  const bool fits = (dim == 1 || dim == 2) && position_ids.size(-1 - axes) == length &&
                    (dim == 1 || position_ids.size(0) == 1 || position_ids.size(0) == batch);
  TORCH_CHECK_VALUE(fits && position_ids.is_cpu(),
                    "[FrozenTransformerEncoder] position_ids must be ",
                    axial ? "(L, axes) or (B, L, axes) = [" : "(L) or (B, L) = [", batch, ", ",
                    length, axial ? ", axes" : "", "] on the CPU. Got ", position_ids.sizes(),
                    " on ", position_ids.device());
}

}  // namespace

torch::Tensor FrozenTransformerEncoder::forward(const torch::Tensor& x, const AttentionMask& mask,
                                                const torch::Tensor& position_ids) const {
  TransformerEncoderRecord nothing;
  return forward_with(x, mask, nothing, position_ids);
}

torch::Tensor FrozenTransformerEncoder::forward_with(
    const torch::Tensor& x, const AttentionMask& mask, TransformerEncoderRecord& record,
    const torch::Tensor& position_ids, const torch::Tensor& segments,
    std::optional<relative::Grid> grid, const torch::Tensor& kept_rows) const {
  const inference::FrozenScope scope;
  const auto model = inference::FrozenAccess::model(*this);
  const bool is_turned =
      kept_rows.defined() && kept_rows.dim() == 2 && !model->options.layer().batch_first();
  return inference::run(*model, x, mask,
                        {position_ids, segments, grid, is_turned ? kept_rows.t() : kept_rows},
                        /*computed=*/{}, record);
}

torch::Tensor inference::run(const TransformerEncoderModel& model, const torch::Tensor& x,
                             const AttentionMask& mask, const LayerInputs& inputs,
                             const at::Tensor& computed, TransformerEncoderRecord& record) {
  TORCH_CHECK_VALUE(!record.output_attentions,
                    "[FrozenTransformerEncoder] output_attentions must be false: the "
                    "TransformerEncoder that was frozen has them. Got true");
  const auto& layer = model.options.layer();
  check_sequence("FrozenTransformerEncoder", x, layer.d_model());
  model.stale_check.check();
  const torch::Tensor batch_first = layer.batch_first() ? x : x.transpose(0, 1);
  const int64_t batch = batch_first.size(0), length = batch_first.size(1);
  const FrozenLayers& layers = *model.layers;
  const bool transforms = layers.needs_key_masks;  // by LibTorch's operations
  const CallThreads threads(model.call, transforms ? Operations::Large : Operations::Small);
  check_position_ids(layers.is_axial, inputs.position_ids, batch, length);
  check_grid("FrozenTransformerEncoder", model.options, inputs.grid, length);
  TORCH_CHECK_VALUE(!layers.needs_key_masks || AttentionMaskAccess::without_keys(mask).is_none(),
                    "[FrozenTransformerEncoder] mask must be of keys only with Mixing::Fourier, "
                    "which mixes all tokens. Got one of ",
                    AttentionMaskAccess::other_makers(mask));
  const auto& transformer_xl = layer.transformer_xl();
  TORCH_CHECK_VALUE(!inputs.segments.defined() || (transformer_xl && transformer_xl->segments()),
                    "[FrozenTransformerEncoder] segments must be undefined without "
                    "TransformerXLOptions::segments. Got segments");
  const at::Tensor& kept_rows = inputs.kept_rows;
  TORCH_CHECK_VALUE(!kept_rows.defined() || kept_rows.sizes() == batch_first.sizes().slice(0, 2),
                    "[FrozenTransformerEncoder] kept_rows must have a number for each of ", batch,
                    " sequences of ", length, " rows. Got ",
                    kept_rows.defined() ? kept_rows.sizes() : at::IntArrayRef());
  const Packing packing = layers.packing_of(mask, batch, length, computed);
  const torch::Tensor rows = packing.packed
                                 ? packing.pack(batch_first)
                                 : batch_first.clone(at::MemoryFormat::Contiguous).flatten(0, 1);
  const ScoreMask rest = layers.mask_of(packing, mask, rows);
  std::vector<torch::Tensor> outputs;
  auto* const requested = record.output_hidden_states ? &outputs : nullptr;
  const auto sequences = [&](const torch::Tensor& packed) {
    const torch::Tensor out = packing.unpack(packed);
    return layer.batch_first() ? out : out.transpose(0, 1);
  };
  const torch::Tensor out = sequences(layers.run(rows, packing, rest, inputs, requested));
  if (record.output_hidden_states) record.hidden_states.push_back(x);
  for (const torch::Tensor& output : outputs) record.hidden_states.push_back(sequences(output));
  return out;
}

const TransformerEncoderOptions& FrozenTransformerEncoder::options() const {
  return referred("FrozenTransformerEncoder", model_)->options;
}
FrozenBytes FrozenTransformerEncoder::bytes() const {
  return inference::FrozenAccess::model(*this)->stale_check.bytes();
}

std::ostream& operator<<(std::ostream& stream, const FrozenTransformerEncoder& model) {
  const TransformerEncoderOptions defaults(TransformerLayerOptions(-1, -1), -1);
  stream << "posenc::FrozenTransformerEncoder(";
  fields::print_fields(stream, model.options(), defaults);
  return stream << inference::FrozenAccess::weights(model) << ")";
}

}  // namespace posenc
