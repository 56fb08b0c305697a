#include "functional/embed/fusable.h"

#include <limits>

#include "functional/dispatch.h"
#include "functional/dropout/generator.h"
#include "functional/embed/composed.h"
#include "functional/embed/norm_rounding.h"
#include "kernels/dispatch.h"
#include "torch_internals/shortcut.h"

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
// its tensors.
class Planner {
 public:
  Planner(const at::Tensor& ids, EmbedPlan& plan) : ids_(ids), plan_(plan), q_(plan.request) {}

  bool tokens(const at::Tensor& weight, const std::optional<int64_t>& padding, bool exact) {
    if (!ids_.defined() || !weight.defined() || weight.dim() != 2 || !is_plain(weight) ||
        !find_type(weight.scalar_type(), exact, plan_.type) || !read(ids_, plan_.tokens, q_.ids))
      return false;
    const RowView rows(weight);
    q_.tokens = ids_.numel();
    if (!rows.whole || q_.tokens == 0 || rows.count == 0 || rows.width == 0) return false;
    plan_.tokens.weight = &weight;
    plan_.tokens.repeats = false;
    q_.weight = weight.const_data_ptr();
    q_.weight_stride = rows.stride;
    q_.dim = rows.width;
    return find_padding_row(padding, rows.count, plan_.tokens.padding) &&
           lie_within(q_.ids, q_.tokens, rows.count);
  }

  // A table with a row for each sequence element: `given`, or consecutive ones from `offset` on.
  bool positions(const at::Tensor& table, const std::optional<int64_t>& padding, int64_t offset,
                 const at::Tensor& given, bool batch_first) {
    const at::IntArrayRef sizes = ids_.sizes();
    if (sizes.empty() || sizes.size() > 2 || !add(table, padding)) return false;
    const bool sequence_first = sizes.size() == 2 && !batch_first;
    const int64_t length = sequence_first ? sizes[0] : sizes.back();
    added_->repeats = q_.tokens > length;
    to_->divide = sequence_first ? sizes[1] : 1;
    to_->count = length;
    to_->offset = offset;
    if (!given.defined()) {
      added_->rows = RowsRead::Consecutive;
      return offset >= 0 && length <= rows_ && offset <= rows_ - length;
    }
    const at::IntArrayRef of = given.sizes();
    if (of == sizes) {
      to_->divide = 1;
      to_->count = q_.tokens;
      added_->repeats = false;
    } else if (of.empty() || of.back() != length || given.numel() != length ||
               of.size() > sizes.size()) {
      return false;
    }
    return offset == 0 && read_given(given);
  }

  // A table of which `given` selects a row for each token; undefined: row 0 for all.
  bool per_token(const at::Tensor& table, const std::optional<int64_t>& padding,
                 const at::Tensor& given) {
    if (!add(table, padding)) return false;
    if (!given.defined()) {
      added_->rows = RowsRead::First;
      return true;
    }
    to_->count = q_.tokens;
    return given.sizes() == ids_.sizes() && read_given(given);
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
  bool finish(bool drops) {
    plan_.records_tables = is_recorded(*plan_.tokens.weight);
    for (int k = 0; k < q_.tables; ++k)
      plan_.records_tables = plan_.records_tables || is_recorded(*plan_.added[k].weight);
    plan_.records_norm =
        q_.norm.weight != nullptr && (plan_.records_tables || is_recorded(*plan_.norm_weight) ||
                                      (q_.norm.bias != nullptr && is_recorded(*plan_.norm_bias)));
    // The backward groups tokens by int32 index.
    if (plan_.records_tables && q_.tokens > std::numeric_limits<int32_t>::max()) return false;
    plan_.drops = drops;
    return !drops || can_draw_dropout_bits(plan_.sum_type());
  }

 private:
  bool add(const at::Tensor& table, const std::optional<int64_t>& padding) {
    const RowView view(table);
    if (!is_plain(table) || table.scalar_type() != plan_.sum_type() || !view.whole ||
        view.count == 0 || view.width != q_.dim)
      return false;
    added_ = &plan_.added[q_.tables];
    to_ = &q_.added[q_.tables++];
    rows_ = view.count;
    *added_ = {&table, RowsRead::Given, nullptr, -1, false};
    to_->table = table.const_data_ptr();
    to_->stride = view.stride;
    to_->offset = 0;
    return find_padding_row(padding, rows_, added_->padding);
  }

  // Reads ids, or a copy of them.
  bool read(const at::Tensor& from, EmbedTable& to, kernel::Integers& ids) {
    at::Tensor copy;
    if (!read_integers(from, copy, ids)) return false;
    to.rows = RowsRead::Given;
    to.ids = &from;
    if (!copy.defined()) return true;
    plan_.copies.reserve(1 + kernel::kEmbeddingsTables);
    to.ids = &plan_.copies.emplace_back(std::move(copy));
    return true;
  }

  bool read_given(const at::Tensor& given) {
    return read(given, *added_, to_->ids) && lie_within(to_->ids, to_->count, rows_);
  }

  bool is_norm_vector(const at::Tensor& vector) const {
    return is_plain(vector) && vector.scalar_type() == at::kFloat && vector.dim() == 1 &&
           vector.sizes()[0] == q_.dim && vector.is_contiguous();
  }

  const at::Tensor& ids_;
  EmbedPlan& plan_;
  kernel::EmbedRequest& q_;
  // The table that was added last, and its number of rows.
  EmbedTable* added_ = nullptr;
  kernel::AddedRows* to_ = nullptr;
  int64_t rows_ = 0;
};

bool plan_types(Planner& to, const EncoderEmbeddingsWeights& weights,
                const EncoderEmbeddingsFuncOptions& options) {
  return !weights.token_types.defined() ||
         to.per_token(weights.token_types, options.type_padding_idx(), options.token_type_ids());
}

bool plan_tables(Planner& to, const EncoderEmbeddingsWeights& weights,
                 const EncoderEmbeddingsFuncOptions& options) {
  const bool types_first = options.order() == embeddings::Order::TypesFirst;
  if (types_first && !plan_types(to, weights, options)) return false;
  if (weights.positions.defined() &&
      !to.positions(weights.positions, options.position_padding_idx(), options.offset(),
                    options.position_ids(), /*batch_first=*/true))
    return false;
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
    if (is_recorded(table) || (given.defined() && given.dim() == 2 && given.sizes() != ids.sizes()))
      return false;
    if (!to.positions(table, std::nullopt, where.offset(), given, where.batch_first()))
      return false;
  }
  return to.finish(options.training() && options.dropout() != 0.0);
}

bool is_fusable(const at::Tensor& ids, const EncoderEmbeddingsWeights& weights,
                const EncoderEmbeddingsFuncOptions& options, EmbedPlan& plan) {
  Planner to(ids, plan);
  const bool drops = options.training() && options.dropout() != 0.0;
  if (!torch_internals::dispatches_plainly() || !has_fusable_order(weights, options, drops) ||
      !to.tokens(weights.tokens, options.padding_idx(), /*exact=*/false) ||
      plan.type != kernel::Type::Float32)
    return false;
  if (!options.scale().is_none()) plan.request.scale = embeddings_scale(options, weights.tokens);
  if (!plan_tables(to, weights, options)) return false;
  const bool norms = weights.norm_weight.defined() && options.norm() != Norm::None;
  if (norms && !to.norm(weights.norm_weight, weights.norm_bias, options.layer_norm_eps()))
    return false;
  // The backward gives one gradient to each table.
  const bool twice = options.types_from_tokens() && options.token_type_ids().defined();
  return to.finish(drops) && !(plan.records_tables && twice);
}

}  // namespace posenc::functional
