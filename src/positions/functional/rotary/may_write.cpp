#include "core/torch_internals/shortcut.h"
#include "positions/functional/rotary/compose.h"
#include "positions/functional/rotary/fused.h"

namespace posenc::functional {
namespace {

// Whether each row holds both, one after the other, as in the output of a single projection to
// queries, keys and values.
bool lie_side_by_side(const at::Tensor& a, const at::Tensor& b,
                      const RotaryFuncOptions& func_options) {
  if (!a.is_alias_of(b) || a.dim() != b.dim() || a.scalar_type() != b.scalar_type()) return false;
  const int64_t rows = length_axis(func_options), heads = heads_axis(func_options);
  const int64_t stride = a.stride(rows);
  const auto is_grid = [&](const at::Tensor& t) {
    return stride > 0 && t.stride(rows) == stride && t.stride(heads) >= 0 && t.stride(-1) == 1 &&
           (t.dim() == 3 || t.stride(0) % stride == 0);
  };
  const auto span = [&](const at::Tensor& t) {
    return (t.size(heads) - 1) * t.stride(heads) + t.size(-1);
  };
  if (!is_grid(a) || !is_grid(b)) return false;
  const int64_t distance = (b.storage_offset() - a.storage_offset()) % stride;
  const int64_t start = distance < 0 ? distance + stride : distance;  // of b after a, in each row
  return start >= span(a) && start + span(b) <= stride;
}

}  // namespace

bool may_write(const at::Tensor& out, const at::Tensor& x, const at::Tensor& other,
               const at::Tensor& other_out, const RotaryCosSin& table,
               const RotaryFuncOptions& func_options) {
  if (!out.defined()) return true;
  using torch_internals::share_memory;
  const auto apart = [&](const at::Tensor& t) {
    return !share_memory(out, t) || lie_side_by_side(out, t, func_options);
  };
  const bool in_place = out.const_data_ptr() == x.const_data_ptr() && out.strides() == x.strides();
  return torch_internals::is_plain(out) && out.stride(-1) == 1 && !share_memory(out, table.cos) &&
         !share_memory(out, table.sin) && !share_memory(out, func_options.position_ids()) &&
         apart(other) && apart(other_out) && (in_place || apart(x));
}

}  // namespace posenc::functional
