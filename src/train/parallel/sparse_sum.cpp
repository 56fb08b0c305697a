#include "train/parallel/sparse_sum.h"

#include <ATen/ops/_sparse_coo_tensor_unsafe.h>
#include <ATen/ops/empty.h>

#include <cstddef>
#include <cstdint>

#include "train/parallel/collectives.h"

namespace posenc::parallel {

SparseRows sparse_rows(const at::Tensor& gradient, const at::Tensor& parameter) {
  if (!gradient.defined()) {
    std::vector<int64_t> sizes = parameter.sizes().vec();
    sizes.front() = 0;
    const at::TensorOptions options(parameter.device());
    return {at::empty({0}, options.dtype(at::kLong)),
            at::empty(sizes, options.dtype(parameter.scalar_type()))};
  }
  const bool by_rows = gradient.sparse_dim() == 1;
  const at::Tensor coo = (by_rows ? gradient : gradient.to_dense().to_sparse(1)).coalesce();
  return {coo._indices().select(0, 0).contiguous(), coo._values().contiguous()};
}

std::vector<at::Tensor> sum_sparse(const RankGroup& group, const std::vector<SparseRows>& own,
                                   const std::vector<at::Tensor>& parameters, const char* caller) {
  if (own.empty()) return {};
  const auto count = static_cast<int64_t>(own.size());
  const at::Tensor counts = at::empty({count}, at::TensorOptions(at::kLong));
  for (int64_t k = 0; k < count; ++k)
    counts.mutable_data_ptr<int64_t>()[k] = own[static_cast<std::size_t>(k)].ids.size(0);
  // On the device of the rows: an engine may have no way between CPUs.
  const at::Tensor all =
      all_gather(group, counts.to(own.front().ids.device()), caller).to(at::kCPU);  // (W, count)
  std::vector<at::Tensor> sums;
  for (std::size_t k = 0; k < own.size(); ++k) {
    std::vector<int64_t> lengths;
    for (int64_t rank = 0; rank < all.size(0); ++rank)
      lengths.push_back(all.const_data_ptr<int64_t>()[rank * count + static_cast<int64_t>(k)]);
    const at::Tensor ids = all_gather_rows(group, own[k].ids, lengths, caller);
    const at::Tensor rows = all_gather_rows(group, own[k].rows, lengths, caller);
    sums.push_back(at::_sparse_coo_tensor_unsafe(ids.unsqueeze(0), rows, parameters[k].sizes(),
                                                 rows.options().layout(at::kSparse))
                       .coalesce());
  }
  return sums;
}

}  // namespace posenc::parallel
