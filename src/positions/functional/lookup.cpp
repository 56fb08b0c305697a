#include "positions/functional/lookup.h"

#include <ATen/ops/embedding.h>
#include <c10/util/Exception.h>

#include <vector>

#include "positions/functional/dispatch.h"

namespace posenc::functional {

void check_index_type(const LookupNames& names, const at::Tensor& index) {
  TORCH_CHECK_TYPE(at::isIntegralType(index.scalar_type(), /*includeBool=*/false), "[",
                   names.module, "] ", names.index, "s must be integers. Got ",
                   index.scalar_type());
}

void check_indices(const LookupNames& names, const at::Tensor& index, int64_t rows) {
  const at::Tensor flat = index.detach().to(at::kCPU, at::kLong).reshape({-1});
  const int64_t* values = flat.const_data_ptr<int64_t>();
  for (int64_t i = 0; i < flat.numel(); ++i) {
    if (values[i] >= 0 && values[i] < rows) continue;
    std::vector<int64_t> coordinates(index.dim());
    for (int64_t axis = index.dim() - 1, rest = i; axis >= 0; --axis) {
      coordinates[axis] = rest % index.size(axis);
      rest /= index.size(axis);
    }
    TORCH_CHECK_INDEX(false, "[", names.module, "] every ", names.index, " must lie in [0, ",
                      names.bound, ") = [0, ", rows, "). Got ", values[i], " at index ",
                      at::IntArrayRef(coordinates));
  }
}

int64_t padding_row(const char* module, const char* name, const std::optional<int64_t>& index,
                    int64_t rows) {
  int64_t row = -1;
  TORCH_CHECK_VALUE(find_padding_row(index, rows, row), "[", module, "] ", name, " must lie in [",
                    -rows, ", ", rows, "). Got ", *index);
  return row;
}

at::Tensor lookup(const LookupNames& names, const at::Tensor& index, const at::Tensor& table,
                  int64_t padding_idx, bool sparse) {
  check_index_type(names, index);
  TORCH_CHECK_VALUE(table.dim() == 2, "[", names.module, "] the table must be (", names.bound,
                    ", d_model). Got ", table.sizes());
  TORCH_CHECK_VALUE(index.device() == table.device(), "[", names.module, "] ", names.index,
                    "s must be on the table's device ", table.device(), ". Got ", index.device());
  const bool known = index.scalar_type() == at::kLong || index.scalar_type() == at::kInt;
  try {
    return at::embedding(table, known ? index : index.to(at::kLong), padding_idx,
                         /*scale_grad_by_freq=*/false, sparse);
  } catch (const c10::IndexError&) {
    check_indices(names, index, table.size(0));
    throw;  // not a range error
  }
}

}  // namespace posenc::functional
