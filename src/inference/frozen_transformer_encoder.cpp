#include <ostream>

#include "inference/checks.h"
#include "inference/model.h"
#include "nn/transformer/layer_parts.h"
#include "posenc/inference/freeze.h"

namespace posenc {

using inference::Packing;

namespace {

void check_position_ids(const torch::Tensor& position_ids, int64_t batch, int64_t length) {
  if (!position_ids.defined()) return;
  const bool fits =
      (position_ids.dim() == 1 || position_ids.dim() == 2) && position_ids.size(-1) == length &&
      (position_ids.dim() == 1 || position_ids.size(0) == 1 || position_ids.size(0) == batch);
  TORCH_CHECK_VALUE(fits && position_ids.is_cpu(),
                    "[FrozenTransformerEncoder] position_ids must be (L) or (B, L) = [", batch,
                    ", ", length, "] on the CPU. Got ", position_ids.sizes(), " on ",
                    position_ids.device());
}

}  // namespace

torch::Tensor FrozenTransformerEncoder::forward(const torch::Tensor& x, const AttentionMask& mask,
                                                const torch::Tensor& position_ids) const {
  const torch::NoGradGuard no_grad;
  const auto model = model_;  // keeps it alive: another may be assigned to the handle meanwhile
  const auto& layer = model->options.layer();
  inference::check_sequence("FrozenTransformerEncoder", x, layer.d_model());
  model->stale_check.check();
  const torch::Tensor batch_first = layer.batch_first() ? x : x.transpose(0, 1);
  const int64_t batch = batch_first.size(0), length = batch_first.size(1);
  check_position_ids(position_ids, batch, length);
  const Packing packing = Packing::of(mask, batch, length);
  const torch::Tensor rows = packing.packed
                                 ? packing.pack(batch_first)
                                 : batch_first.clone(at::MemoryFormat::Contiguous).flatten(0, 1);
  const ScoreMask rest = packing.mask_of_rows(mask, layer.num_heads(), rows);
  const torch::Tensor out =
      packing.unpack(inference::run(model->stack, rows, packing, rest, position_ids));
  return layer.batch_first() ? out : out.transpose(0, 1);
}

const TransformerEncoderOptions& FrozenTransformerEncoder::options() const {
  return model_->options;
}
FrozenBytes FrozenTransformerEncoder::bytes() const { return model_->stale_check.bytes(); }

std::ostream& operator<<(std::ostream& stream, const FrozenTransformerEncoder& model) {
  const auto& options = model.options();
  stream << "posenc::FrozenTransformerEncoder(num_layers=" << options.num_layers() << ", ";
  print(stream, options.layer());
  return stream << inference::FrozenAccess::weights(model) << ")";
}

}  // namespace posenc
