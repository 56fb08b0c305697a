#include "functional/embed/fusable.h"

#include <limits>

#include "functional/arguments.h"
#include "functional/dispatch.h"
#include "functional/dropout/generator.h"
#include "kernels/dispatch.h"
#include "torch_internals/shortcut.h"

namespace posenc::functional {
namespace {

namespace kernel = kernels::embed;
using torch_internals::is_plain;
using torch_internals::is_recorded;

// Caches the last factor: a model has one width, and pow() is slow compared with a single token.
double factor_of(const Scale& scale, int64_t dim) {
  if (!scale.is_sqrt_dim()) return scale.factor(dim);
  static thread_local int64_t last = 0;
  static thread_local double factor = 0.0;
  if (last != dim) {
    factor = scale.factor(dim);
    last = dim;
  }
  return factor;
}

bool plan_positions(const at::Tensor& ids, const at::Tensor& table,
                    const PositionalEncodingFuncOptions& func_options, EmbedPlan& plan) {
  kernel::GatherRequest& g = plan.gather;
  const at::IntArrayRef sizes = ids.sizes();
  if (!is_plain(table) || is_recorded(table) || sizes.empty() || sizes.size() > 2) return false;
  const RowView rows(table);
  if (!rows.whole || rows.width != g.dim) return false;
  const bool sequence_first = sizes.size() == 2 && !func_options.batch_first();
  const int64_t length = sizes[sizes.size() == 1 || sequence_first ? 0 : 1];
  kernel::Positions& p = g.positions;
  p.table = table.const_data_ptr();
  p.stride = rows.stride;
  p.offset = func_options.offset();
  p.divide = sequence_first ? sizes[1] : 1;
  p.count = length;
  if (!func_options.position_ids().defined())
    return p.offset >= 0 && length <= rows.count && p.offset <= rows.count - length;
  const at::Tensor& where = func_options.position_ids();
  if (p.offset != 0 || !where.defined() || !read_integers(where, plan.position_ids_copy, p.ids))
    return false;
  if (where.dim() == 1 && where.size(0) == length) {
    // one position for each place in a sequence
  } else if (where.sizes() == sizes) {
    p.divide = 1;
    p.count = g.tokens;
  } else {
    return false;
  }
  return kernels::chosen().gather.find_out_of_range(p.ids, where.numel(), rows.count) < 0;
}

bool plan_tokens(const at::Tensor& ids, const at::Tensor& weight, const EmbedFuncOptions& options,
                 EmbedPlan& plan) {
  const bool exact = options.precision() == Precision::Exact;
  kernel::GatherRequest& g = plan.gather;
  if (!weight.defined() || !is_plain(weight) || weight.dim() != 2 ||
      !find_type(weight.scalar_type(), exact, plan.type) || !ids.defined() ||
      !read_integers(ids, plan.ids_copy, g.ids))
    return false;
  const RowView rows(weight);
  g.tokens = ids.numel();
  if (!rows.whole || g.tokens == 0 || rows.count == 0 || rows.width == 0) return false;
  g.weight = weight.const_data_ptr();
  g.weight_stride = rows.stride;
  g.dim = rows.width;
  if (!options.scale().is_none()) g.scale = factor_of(options.scale(), g.dim);
  if (!find_padding_row(options.padding_idx(), rows.count, plan.padding)) return false;
  return kernels::chosen().gather.find_out_of_range(g.ids, g.tokens, rows.count) < 0;
}

}  // namespace

bool is_fusable(const at::Tensor& ids, const at::Tensor& weight, const at::Tensor& table,
                const EmbedFuncOptions& options, EmbedPlan& plan) {
  if (!torch_internals::dispatches_plainly() || !plan_tokens(ids, weight, options, plan))
    return false;
  const at::ScalarType dtype = weight.scalar_type();
  if (table.defined() && (table.scalar_type() != (rounds_once(plan.type) ? at::kFloat : dtype) ||
                          !plan_positions(ids, table, options.position(), plan)))
    return false;
  plan.is_recorded = is_recorded(weight);
  // The backward groups tokens by int32 index.
  if (plan.is_recorded && plan.gather.tokens > std::numeric_limits<int32_t>::max()) return false;
  plan.drops = options.training() && options.dropout() != 0.0;
  return !plan.drops || can_draw_dropout_bits(rounds_once(plan.type) ? at::kFloat : dtype);
}

}  // namespace posenc::functional
