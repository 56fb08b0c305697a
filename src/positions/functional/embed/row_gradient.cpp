#include "positions/functional/embed/row_gradient.h"

#include <ATen/Parallel.h>
#include <ATen/ops/_sparse_coo_tensor_unsafe.h>
#include <ATen/ops/empty.h>

#include <cstring>
#include <vector>

#include "core/torch_internals/fresh_memory.h"
#include "core/torch_internals/shortcut.h"
#include "kernels/dispatch.h"
#include "positions/functional/dispatch.h"

namespace posenc::functional {

namespace kernel = kernels::embed;

kernel::SumRowsRequest RowGradient::request(const at::Tensor& grad,
                                            const kernel::TokenGroups& groups) const {
  kernel::SumRowsRequest s;
  s.grad = grad.const_data_ptr();
  s.dim = dim;
  s.scale = scale;
  s.kept = kept;
  s.token = groups.tokens.data();
  s.first = groups.first.data();
  s.row = groups.ids.data();
  s.out_stride = dim;
  return s;
}

// Each row is summed by one thread, so the result does not depend on the number of threads.
void RowGradient::sum(const kernel::SumRowsRequest& request, const kernel::TokenGroups& groups,
                      bool scratch) const {
  const auto sum_rows = kernels::chosen().sum_rows.sum_rows[static_cast<int>(type)];
  const auto summed = static_cast<int64_t>(groups.tokens.size());
  const int64_t parts = worth_threads(summed * dim) ? at::get_num_threads() : 1;
  const auto part = [&](int64_t begin, int64_t end) {
    kernel::SumRowsRequest own = request;
    std::vector<char> row(scratch ? static_cast<size_t>(dim * kernel::element_size(type)) : 0);
    own.scratch = scratch ? row.data() : nullptr;
    sum_rows(own, kernel::first_group(groups, begin, parts),
             kernel::first_group(groups, end, parts));
  };
  parts > 1 ? at::parallel_for(0, parts, 1, part) : part(0, 1);
}

at::Tensor RowGradient::dense(const at::Tensor& grad, const kernel::TokenGroups& groups) const {
  at::Tensor out = torch_internals::lazy_zeros(rows, dim, dtype);
  kernel::SumRowsRequest s = request(grad, groups);
  s.out = out.data_ptr();
  sum(s, groups, /*scratch=*/false);
  return out;
}

at::Tensor RowGradient::sparse(const at::Tensor& grad, const kernel::TokenGroups& groups) const {
  const auto count = static_cast<int64_t>(groups.ids.size());
  const at::TensorOptions options(dtype);
  const at::Tensor indices = at::empty({1, count}, at::TensorOptions(at::kLong));
  const at::Tensor values = at::empty({count, dim}, options);
  if (count > 0) {
    std::memcpy(indices.data_ptr(), groups.ids.data(), sizeof(int64_t) * groups.ids.size());
    kernel::SumRowsRequest s = request(grad, groups);
    s.row = nullptr;
    s.out = values.data_ptr();
    sum(s, groups, /*scratch=*/false);
  }
  return at::_sparse_coo_tensor_unsafe(indices, values, {rows, dim}, options.layout(at::kSparse),
                                       /*is_coalesced=*/true);
}

bool RowGradient::add_to(const torch_internals::GradAccess& access, const at::Tensor& grad,
                         const kernel::TokenGroups& groups) const {
  if (!access || !access.may_add_in_place(grad)) return false;
  const at::Tensor& existing = access.grad();
  torch_internals::note_write(existing);
  kernel::SumRowsRequest s = request(grad, groups);
  s.out = existing.data_ptr();
  sum(s, groups, /*scratch=*/true);
  return true;
}

}  // namespace posenc::functional
