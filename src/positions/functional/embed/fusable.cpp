#include "positions/functional/embed/fusable.h"

#include <c10/macros/Macros.h>

#include <limits>

#include "core/torch_internals/shortcut.h"
#include "kernels/dispatch.h"
#include "positions/functional/dispatch.h"
#include "positions/functional/dropout/generator.h"
#include "positions/functional/embed/composed.h"
#include "positions/functional/embed/norm_rounding.h"

namespace posenc::functional {
namespace {

namespace kernel = kernels::embed;
using embeddings::Norm;
using embeddings::Projection;
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

bool lie_within(const kernel::Integers& ids, int64_t n, int64_t rows) {
  return kernels::chosen().gather.find_out_of_range(ids, n, rows) < 0;
}

// Fills in a plan, one part of it after another. Each part returns false if a kernel cannot read
// its tensors. What every embedding needs is inlined: calls and a planner in memory would take a
// noticeable part of the time of a single token.
class Planner {
 public:
  Planner(const at::Tensor& ids, EmbedPlan& plan) : ids_(ids), plan_(plan), q_(plan.request) {}

  C10_ALWAYS_INLINE bool tokens(const at::Tensor& weight, const std::optional<int64_t>& padding,
                                bool exact) {
    EmbedTable& tokens = plan_.tokens;
    if (!ids_.defined() || !weight.defined() || weight.dim() != 2 || !is_plain(weight) ||
        !find_type(weight.scalar_type(), exact, plan_.type) || !read(ids_, tokens, q_.ids))
      return false;
    const RowView rows(weight);
    q_.tokens = ids_.numel();
    if (!rows.whole || q_.tokens == 0 || rows.count == 0 || rows.width == 0) return false;
    tokens.weight = &weight;
    tokens.rows = RowsRead::Given;
    tokens.repeats = false;
    tokens.records = is_recorded(weight);
    q_.weight = weight.const_data_ptr();
    q_.weight_stride = rows.stride;
    q_.dim = rows.width;
    return find_padding_row(padding, rows.count, tokens.padding) &&
           lie_within(q_.ids, q_.tokens, rows.count);
  }

  // A table with a row for each sequence element: `given`, or consecutive ones from `offset` on.
  C10_ALWAYS_INLINE bool positions(const at::Tensor& table, const std::optional<int64_t>& padding,
                                   int64_t offset, const at::Tensor& given, bool batch_first) {
    const at::IntArrayRef sizes = ids_.sizes();
    if (sizes.empty() || sizes.size() > 2) return false;
    const int64_t rows = add(table, padding);
    if (rows == 0) return false;
    EmbedTable& added = last();
    kernel::AddedRows& to = last_rows();
    const bool sequence_first = sizes.size() == 2 && !batch_first;
    const int64_t length = sequence_first ? sizes[0] : sizes.back();
    added.repeats = q_.tokens > length;
    to.divide = sequence_first ? sizes[1] : 1;
    to.count = length;
    to.offset = offset;
    if (!given.defined()) {
      added.rows = RowsRead::Consecutive;
      return offset >= 0 && length <= rows && offset <= rows - length;
    }
    const at::IntArrayRef of = given.sizes();
    if (of == sizes) {
      to.divide = 1;
      to.count = q_.tokens;
      added.repeats = false;
    } else if (of.empty() || of.back() != length || given.numel() != length ||
               of.size() > sizes.size()) {
      return false;
    }
    return offset == 0 && read_given(given, rows);
  }

  // A table of which `given` selects a row for each token; undefined: row 0 for all.
  bool per_token(const at::Tensor& table, const std::optional<int64_t>& padding,
                 const at::Tensor& given) {
    const int64_t rows = add(table, padding);
    if (rows == 0) return false;
    if (!given.defined()) {
      last().rows = RowsRead::First;
      return true;
    }
    last_rows().count = q_.tokens;
    return given.sizes() == ids_.sizes() && read_given(given, rows);
  }

  bool norm(const at::Tensor& weight, const at::Tensor& bias, double eps) {
    const auto rounding = norm_rounding();
    if (!rounding || q_.dim > kernel::kEmbeddingsWidest || !is_norm_vector(weight) ||
        (bias.defined() && !is_norm_vector(bias)))
      return false;
    plan_.rounding = *rounding;
    plan_.norm_weight = &weight;
    plan_.norm_bias = &bias;
    q_.norm.weight = weight.const_data_ptr<float>();
    if (bias.defined()) q_.norm.bias = bias.const_data_ptr<float>();
    q_.norm.eps = static_cast<float>(eps);
    return true;
  }

  // Comes last: what autograd records, and the dropout.
  C10_ALWAYS_INLINE bool finish(bool drops) {
    plan_.records_tables = plan_.tokens.records;
    for (int k = 0; k < q_.tables; ++k) plan_.records_tables |= plan_.added[k].records;
    plan_.records_norm =
        q_.norm.weight != nullptr && (plan_.records_tables || is_recorded(*plan_.norm_weight) ||
                                      (q_.norm.bias != nullptr && is_recorded(*plan_.norm_bias)));
    // The backward groups tokens by int32 index.
    if (plan_.records_tables && q_.tokens > std::numeric_limits<int32_t>::max()) return false;
    plan_.drops = drops;
    return !drops || can_draw_dropout_bits(plan_.sum_type());
  }

 private:
  // Adds a table of which nothing is read yet. Returns its number of rows, 0 for an unfit one, or
  // one too many: no model has boxes beside task types.
  C10_ALWAYS_INLINE int64_t add(const at::Tensor& table, const std::optional<int64_t>& padding) {
    const RowView view(table);
    if (q_.tables == kernel::kEmbeddingsTables || !is_plain(table) ||
        table.scalar_type() != plan_.sum_type() || !view.whole || view.width != q_.dim)
      return 0;
    int64_t row = -1;
    if (!find_padding_row(padding, view.count, row)) return 0;
    const void* const data = table.const_data_ptr();
    const bool records = is_recorded(table);
    ++q_.tables;
    last() = {&table, RowsRead::Given, nullptr, row, /*repeats=*/false, records};
    last_rows() = {data, view.stride, /*offset=*/0, {nullptr, false}, /*divide=*/1, /*count=*/1};
    return view.count;
  }

  // The table that was added last, and its part of the request.
  EmbedTable& last() { return plan_.added[q_.tables - 1]; }
  kernel::AddedRows& last_rows() { return q_.added[q_.tables - 1]; }

  bool read(const at::Tensor& from, EmbedTable& to, kernel::Integers& ids) {
    to.ids = read_integers(from, plan_.copies, ids);
    return to.ids != nullptr;
  }

  bool read_given(const at::Tensor& given, int64_t rows) {
    const kernel::AddedRows& to = last_rows();
    return read(given, last(), last_rows().ids) && lie_within(to.ids, to.count, rows);
  }

  bool is_norm_vector(const at::Tensor& vector) const {
    return is_plain(vector) && vector.scalar_type() == at::kFloat && vector.dim() == 1 &&
           vector.sizes()[0] == q_.dim && vector.is_contiguous();
  }

  const at::Tensor& ids_;
  EmbedPlan& plan_;
  kernel::EmbedRequest& q_;
};

bool plan_types(Planner& to, const EncoderEmbeddingsWeights& weights,
                const EncoderEmbeddingsFuncOptions& options) {
  return !weights.token_types.defined() ||
         to.per_token(weights.token_types, options.type_padding_idx(), options.token_type_ids());
}

// The index of a table of boxes is made here, and kept with the plan.
bool plan_boxes(Planner& to, const EncoderEmbeddingsWeights& weights,
                const EncoderEmbeddingsFuncOptions& options, EmbedPlan& plan) {
  for (const BoxRows& rows : box_rows(weights, options.bbox())) {
    const at::Tensor* index = &rows.index;
    if (index->defined()) index = &plan.copies.emplace_front(index->contiguous());
    if (!to.per_token(*rows.table, std::nullopt, *index)) return false;
  }
  return true;
}

bool plan_tables(Planner& to, const EncoderEmbeddingsWeights& weights,
                 const EncoderEmbeddingsFuncOptions& options, EmbedPlan& plan) {
  const bool types_first = options.order() == embeddings::Order::TypesFirst;
  if (types_first && !plan_types(to, weights, options)) return false;
  if (weights.positions.defined() &&
      !to.positions(weights.positions, options.position_padding_idx(), options.offset(),
                    options.position_ids(), /*batch_first=*/true))
    return false;
  if (!plan_boxes(to, weights, options, plan)) return false;
  if (!types_first && !plan_types(to, weights, options)) return false;
  if (options.types_from_tokens() && options.token_type_ids().defined() &&
      !to.per_token(weights.tokens, options.padding_idx(), options.token_type_ids()))
    return false;
  return !weights.task_types.defined() ||
         to.per_token(weights.task_types, std::nullopt, options.task_type_ids());
}

// ATen runs a projection that comes last, or that comes before a dropout that drops nothing.
bool has_fusable_order(const EncoderEmbeddingsWeights& weights,
                       const EncoderEmbeddingsFuncOptions& options, bool drops) {
  const Norm norm = weights.norm_weight.defined() ? options.norm() : Norm::None;
  if (norm != Norm::None && options.stepwise_norm()) return false;
  if (norm == Norm::AfterTokens || (norm == Norm::AfterDropout && drops)) return false;
  const bool projects = weights.projection_weight.defined();
  if (!projects || options.projection() == Projection::None ||
      options.projection() == Projection::Last)
    return true;
  return options.projection() == Projection::BeforeDropout && !drops && norm != Norm::AfterDropout;
}

}  // namespace

at::ScalarType EmbedPlan::sum_type() const {
  return rounds_once(type) ? at::kFloat : tokens.weight->scalar_type();
}

bool is_fusable(const at::Tensor& ids, const at::Tensor& weight, const at::Tensor& table,
                const EmbedFuncOptions& options, EmbedPlan& plan) {
  Planner to(ids, plan);
  if (!torch_internals::dispatches_plainly() ||
      !to.tokens(weight, options.padding_idx(), options.precision() == Precision::Exact))
    return false;
  if (!options.scale().is_none()) plan.request.scale = factor_of(options.scale(), plan.request.dim);
  plan.sparse = options.sparse();
  if (table.defined()) {
    const PositionalEncodingFuncOptions& where = options.position();
    const at::Tensor& given = where.position_ids();
    if (given.defined() && given.dim() == 2 && given.sizes() != ids.sizes()) return false;
    if (!to.positions(table, std::nullopt, where.offset(), given, where.batch_first()) ||
        plan.added[0].records)
      return false;
  }
  return to.finish(options.training() && options.dropout() != 0.0);
}

bool is_fusable(const at::Tensor& ids, const EncoderEmbeddingsWeights& weights,
                const EncoderEmbeddingsFuncOptions& options, EmbedPlan& plan) {
  Planner to(ids, plan);
  const bool drops = options.training() && options.dropout() != 0.0;
  if (options.trigram_input() || options.no_norm() ||
      boxes_are_side_by_side(weights, weights.tokens.size(1)) ||
      !torch_internals::dispatches_plainly() || !has_fusable_order(weights, options, drops) ||
      !to.tokens(weights.tokens, options.padding_idx(), /*exact=*/false) ||
      plan.type != kernel::Type::Float32)
    return false;
  if (!options.scale().is_none()) plan.request.scale = embeddings_scale(options, weights.tokens);
  if (!plan_tables(to, weights, options, plan)) return false;
  const bool norms = weights.norm_weight.defined() && options.norm() != Norm::None;
  if (norms && !to.norm(weights.norm_weight, weights.norm_bias, options.layer_norm_eps()))
    return false;
  if (!to.finish(drops)) return false;
  // The backward may add the gradient of the first table to .grad: then no other may follow.
  const bool twice = options.types_from_tokens() && options.token_type_ids().defined();
  const bool begins_with_boxes = weights.x_positions.defined() && !plan.tokens.records;
  return !plan.records_tables || !(twice || begins_with_boxes);
}

}  // namespace posenc::functional
