#include "posenc/positions/functional/pad_sequences.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <ATen/ops/tensor.h>
#include <c10/util/Exception.h>

#include <algorithm>

#include "core/tensors.h"

namespace posenc::functional {

PaddedBatch pad_sequences(const std::vector<at::Tensor>& sequences,
                          const PadSequencesOptions& options) {
  TORCH_CHECK_VALUE(!sequences.empty(), "[pad_sequences] at least one sequence is required. Got 0");
  TORCH_CHECK_VALUE(options.max_len() >= 0, "[pad_sequences] max_len must not be negative. Got ",
                    options.max_len());
  const at::TensorOptions type = sequences[0].options();
  TORCH_CHECK_TYPE(at::isIntegralType(sequences[0].scalar_type(), /*includeBool=*/false),
                   "[pad_sequences] sequences must hold integers. Got ",
                   sequences[0].scalar_type());
  std::vector<int64_t> lengths;
  for (const at::Tensor& sequence : sequences) {
    const size_t i = lengths.size();
    TORCH_CHECK_VALUE(sequence.dim() == 1, "[pad_sequences] every sequence must be (L). Got ",
                      sequence.sizes(), " for sequence ", i);
    TORCH_CHECK_TYPE(sequence.scalar_type() == sequences[0].scalar_type(),
                     "[pad_sequences] all sequences must have one type, ",
                     sequences[0].scalar_type(), ". Got ", sequence.scalar_type(), " for sequence ",
                     i);
    TORCH_CHECK_VALUE(sequence.device() == sequences[0].device(),
                      "[pad_sequences] all sequences must be on one device, ",
                      sequences[0].device(), ". Got ", sequence.device(), " for sequence ", i);
    lengths.push_back(sequence.size(0));
  }
  const auto longest = std::max_element(lengths.begin(), lengths.end());
  const int64_t width = options.max_len() > 0 ? options.max_len() : *longest;
  TORCH_CHECK_VALUE(*longest <= width, "[pad_sequences] sequence ", longest - lengths.begin(),
                    " must not be longer than max_len ", width, ". Got ", *longest);

  PaddedBatch batch;
  const auto count = static_cast<int64_t>(sequences.size());
  batch.ids = at::full({count, width}, options.pad_id(), type);
  for (int64_t i = 0; i < count; ++i) batch.ids[i].slice(0, 0, lengths[i]).copy_(sequences[i]);
  batch.lengths = sent_to(at::tensor(lengths, at::TensorOptions(at::kLong)), type.device());
  batch.mask = length_mask(batch.lengths, width);
  return batch;
}

at::Tensor length_mask(const at::Tensor& lengths, int64_t max_len) {
  TORCH_CHECK_VALUE(lengths.dim() == 1, "[length_mask] lengths must be (B). Got ", lengths.sizes());
  TORCH_CHECK_TYPE(at::isIntegralType(lengths.scalar_type(), /*includeBool=*/false),
                   "[length_mask] lengths must be integers. Got ", lengths.scalar_type());
  TORCH_CHECK_VALUE(max_len >= 0, "[length_mask] max_len must not be negative. Got ", max_len);
  if (max_len == 0 && lengths.numel() > 0) max_len = lengths.max().item<int64_t>();
  return at::arange(max_len, lengths.options().dtype(at::kLong)).unsqueeze(0) <
         lengths.unsqueeze(1);  // (B, L)
}

}  // namespace posenc::functional
