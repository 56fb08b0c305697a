#include "positions/functional/dispatch.h"

#include "core/torch_internals/parts.h"
#include "core/torch_internals/shortcut.h"

namespace posenc::functional {

namespace kernel = kernels::embed;

bool worth_threads(int64_t elements) {
  constexpr int64_t kLeast = 65536;  // measured: docs/developers/benchmarks.md
  return elements >= kLeast && torch_internals::most_threads() > 1;
}

bool find_type(at::ScalarType dtype, bool exact, kernel::Type& type) {
  switch (dtype) {
    case at::kFloat: type = kernel::Type::Float32; return true;
    case at::kDouble: type = kernel::Type::Float64; return true;
    case at::kBFloat16:
      type = exact ? kernel::Type::BFloat16Exact : kernel::Type::BFloat16;
      return true;
    case at::kHalf: type = exact ? kernel::Type::Float16Exact : kernel::Type::Float16; return true;
    default: return false;
  }
}

const at::Tensor* read_integers(const at::Tensor& from, std::forward_list<at::Tensor>& copies,
                                kernel::Integers& to) {
  if (!torch_internals::is_plain(from) ||
      !at::isIntegralType(from.scalar_type(), /*includeBool=*/false))
    return nullptr;
  const bool known = from.scalar_type() == at::kLong || from.scalar_type() == at::kInt;
  const at::Tensor* const read =
      known && from.is_contiguous()
          ? &from
          : &copies.emplace_front((known ? from : from.to(at::kLong)).contiguous());
  to = {read->const_data_ptr(), read->scalar_type() == at::kLong};
  return read;
}

// Reads sizes and strides as arrays because size(axis) checks its argument on every call.
RowView::RowView(const at::Tensor& table) {
  const at::IntArrayRef sizes = table.sizes(), strides = table.strides();
  const size_t n = sizes.size();
  const bool matrix = n == 2 || (n == 3 && sizes[0] == 1);
  count = matrix ? sizes[n - 2] : 0;
  width = matrix ? sizes[n - 1] : 0;
  stride = matrix ? strides[n - 2] : 0;
  whole = matrix && (strides[n - 1] == 1 || width == 1) && stride >= width;
}

bool find_padding_row(const std::optional<int64_t>& index, int64_t rows, int64_t& found) {
  found = -1;
  if (!index) return true;
  if (*index < -rows || *index >= rows) return false;
  found = *index < 0 ? *index + rows : *index;
  return true;
}

}  // namespace posenc::functional
