#include "inference/packing.h"

#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>

namespace posenc::inference {

Packing::Packing(int64_t batch_, int64_t length_)
    : batch(batch_), length(length_), rows(batch * length), packed(false) {
  for (int64_t b = 0; b < batch; ++b) first.push_back(b * length), lengths.push_back(length);
}

Packing::Packing(const at::Tensor& keep)
    : batch(keep.size(0)), length(keep.size(1)), rows(0), packed(true) {
  const at::Tensor kept = keep.contiguous();
  const bool* const is_kept = kept.const_data_ptr<bool>();
  for (int64_t b = 0; b < batch; ++b) {
    first.push_back(rows);
    for (int64_t place = b * length; place < (b + 1) * length; ++place)
      if (is_kept[place]) places.push_back(place);
    rows = static_cast<int64_t>(places.size());
    lengths.push_back(rows - first.back());
  }
}

Packing Packing::of(const AttentionMask& mask, int64_t batch, int64_t length) {
  const at::Tensor keys = mask.keys();
  const bool fits =
      keys.defined() && keys.is_cpu() && keys.size(0) == batch && keys.size(1) == length;
  Packing packing = fits && !keys.all().item<bool>() ? Packing(keys) : Packing(batch, length);
  packing.covers_mask = fits || mask.is_none();
  return packing;
}

ScoreMask Packing::residual_mask(const AttentionMask& mask, const AttentionShape& shape,
                                 const at::Tensor& like) const {
  return covers_mask || batch == 0 ? ScoreMask() : mask.resolve(shape, like);
}

at::Tensor Packing::pack(const at::Tensor& x) const {
  const at::Tensor flat = x.flatten(0, 1);
  return packed ? flat.index_select(0, at::tensor(places)) : flat;
}

at::Tensor Packing::unpack(const at::Tensor& packed_rows) const {
  if (!packed) return packed_rows.view({batch, length, packed_rows.size(1)});
  const at::Tensor all = at::zeros({batch * length, packed_rows.size(1)}, packed_rows.options());
  all.index_copy_(0, at::tensor(places), packed_rows);
  return all.view({batch, length, packed_rows.size(1)});
}

}  // namespace posenc::inference
