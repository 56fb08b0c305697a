#include "functional/embed/plan.h"

#include <ATen/core/grad_mode.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

namespace posenc::functional {
namespace {

namespace kernel = kernels::embed;
using Key = c10::DispatchKey;

constexpr c10::DispatchKeySet kPlainTensor({Key::CPU, Key::AutogradCPU, Key::ADInplaceOrView,
                                            Key::AutocastCPU});

bool within(c10::DispatchKeySet keys, c10::DispatchKeySet all) { return (keys | all) == all; }

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

// Contiguous integers of a kind that the kernels read; in `copy`, where one had to be made.
bool read_integers(const at::Tensor& from, at::Tensor& copy, kernel::Integers& to) {
  if (!is_plain(from) || !at::isIntegralType(from.scalar_type(), /*includeBool=*/false))
    return false;
  const bool known = from.scalar_type() == at::kLong || from.scalar_type() == at::kInt;
  if (!known || !from.is_contiguous()) copy = (known ? from : from.to(at::kLong)).contiguous();
  const at::Tensor& read = copy.defined() ? copy : from;
  to.data = read.const_data_ptr();
  to.wide = read.scalar_type() == at::kLong;
  return true;
}

// The table's rows as (rows, D) or (1, rows, D).
struct Rows {
  const at::Tensor& table;
  bool matrix() const { return table.dim() == 2 || (table.dim() == 3 && table.size(0) == 1); }
  int64_t count() const { return table.size(table.dim() - 2); }
  int64_t stride() const { return table.stride(table.dim() - 2); }
};

// Rows whose elements lie side by side and that no other row overlaps.
bool has_plain_rows(const at::Tensor& matrix) {
  const int64_t width = matrix.size(-1);
  return (matrix.stride(-1) == 1 || width == 1) && matrix.stride(-2) >= width;
}

bool plan_positions(const at::Tensor& ids, const at::Tensor& table,
                    const PositionalEncodingFuncOptions& how, EmbedPlan& plan) {
  kernel::Gather& g = plan.gather;
  const Rows rows{table};
  if (!is_plain(table) || is_recorded(table) || !rows.matrix() || !has_plain_rows(table) ||
      table.size(-1) != g.dim || ids.dim() < 1 || ids.dim() > 2)
    return false;
  const bool sequence_first = ids.dim() == 2 && !how.batch_first();
  const int64_t length = ids.size(ids.dim() == 1 || sequence_first ? 0 : 1);
  kernel::Positions& p = g.positions;
  p.table = table.const_data_ptr();
  p.stride = rows.stride();
  p.offset = how.offset();
  p.divide = sequence_first ? ids.size(1) : 1;
  p.count = length;
  if (!how.position_ids().defined())
    return p.offset >= 0 && length <= rows.count() && p.offset <= rows.count() - length;
  const at::Tensor& where = how.position_ids();
  if (p.offset != 0 || !where.defined() || !read_integers(where, plan.position_ids_copy, p.ids))
    return false;
  if (where.dim() == 1 && where.size(0) == length) {
    // one for each place of a sequence
  } else if (where.sizes() == ids.sizes()) {
    p.divide = 1;
    p.count = g.tokens;
  } else {
    return false;
  }
  return kernel::kernels().gather.first_outside(p.ids, where.numel(), rows.count()) < 0;
}

}  // namespace

bool is_plain(const at::Tensor& tensor) {
  // A tensor without autograd's data has no forward-mode gradient either: cheap to see.
  return within(tensor.key_set(), kPlainTensor) &&
         (tensor.unsafeGetTensorImpl()->autograd_meta() == nullptr ||
          !tensor._fw_grad(/*level=*/0).defined());
}

bool dispatches_plainly() {
  const auto local = c10::impl::tls_local_dispatch_key_set();
  return within(local.included_, c10::default_included_set) &&
         within(c10::default_excluded_set, local.excluded_);
}

bool is_recorded(const at::Tensor& tensor) {
  return tensor.requires_grad() && at::GradMode::is_enabled() &&
         !c10::impl::tls_local_dispatch_key_set().excluded_.has(Key::AutogradCPU);
}

bool make_plan(const at::Tensor& ids, const at::Tensor& weight, const at::Tensor& table,
               const EmbedFuncOptions& options, EmbedPlan& plan) {
  const bool exact = options.precision() == Precision::Exact;
  kernel::Gather& g = plan.gather;
  if (!weight.defined() || !is_plain(weight) || weight.dim() != 2 || !has_plain_rows(weight) ||
      !find_type(weight.scalar_type(), exact, plan.type) || !ids.defined() || ids.numel() == 0 ||
      weight.numel() == 0 || !read_integers(ids, plan.ids_copy, g.ids))
    return false;
  g.tokens = ids.numel();
  g.weight = weight.const_data_ptr();
  g.weight_stride = weight.stride(0);
  g.dim = weight.size(1);
  if (!options.scale().is_none()) g.scale = options.scale().factor(g.dim);
  if (const auto padding = options.padding_idx()) {
    const int64_t rows = weight.size(0);
    if (*padding < -rows || *padding >= rows) return false;
    plan.padding = *padding < 0 ? *padding + rows : *padding;
  }
  if (kernel::kernels().gather.first_outside(g.ids, g.tokens, weight.size(0)) >= 0) return false;
  if (!table.defined()) return true;
  const bool once = rounds_once(plan.type);
  return table.scalar_type() == (once ? at::kFloat : weight.scalar_type()) &&
         plan_positions(ids, table, options.position(), plan);
}

}  // namespace posenc::functional
