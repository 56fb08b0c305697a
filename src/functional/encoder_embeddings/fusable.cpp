#include "functional/encoder_embeddings/fusable.h"

#include <limits>

#include "functional/arguments.h"
#include "functional/dropout/generator.h"
#include "functional/encoder_embeddings/composed.h"
#include "functional/encoder_embeddings/norm_rounding.h"
#include "kernels/dispatch.h"
#include "torch_internals/shortcut.h"

namespace posenc::functional {
namespace {

namespace kernel = kernels::embed;
using embeddings::Norm;
using embeddings::Projection;
using torch_internals::is_plain;
using torch_internals::is_recorded;

bool is_float_table(const at::Tensor& table, const RowView& rows, int64_t width) {
  return is_plain(table) && table.scalar_type() == at::kFloat && table.dim() == 2 && rows.whole &&
         rows.count > 0 && rows.width == width;
}

class EmbeddingsPlanner {
 public:
  EmbeddingsPlanner(const at::Tensor& ids, const EncoderEmbeddingsWeights& weights,
                    const EncoderEmbeddingsFuncOptions& options, EncoderEmbeddingsPlan& plan)
      : ids_(ids), weights_(weights), options_(options), plan_(plan), q_(plan.request) {}

  bool plan() {
    return has_fusable_order() && plan_tokens() && plan_tables() && plan_norm() && plan_recording();
  }

 private:
  // ATen runs a projection that comes last, or that comes before a dropout that drops nothing.
  bool has_fusable_order() {
    plan_.drops = options_.training() && options_.dropout() != 0.0;
    const bool norms = weights_.norm_weight.defined();
    const Norm norm = norms ? options_.norm() : Norm::None;
    plan_.projects =
        weights_.projection_weight.defined() && options_.projection() != Projection::None;
    if (norm == Norm::AfterTokens || (norm == Norm::AfterDropout && plan_.drops)) return false;
    if (!plan_.projects || options_.projection() == Projection::Last) return true;
    return options_.projection() == Projection::BeforeDropout && !plan_.drops &&
           norm != Norm::AfterDropout;
  }

  bool plan_tokens() {
    const at::Tensor& table = weights_.tokens;
    if (!ids_.defined() || ids_.dim() < 1 || ids_.dim() > 2 || !table.defined()) return false;
    EmbeddingsTable& tokens = plan_.tokens;
    const RowView rows(table);
    q_.tokens = ids_.numel();
    if (q_.tokens == 0 || rows.width == 0 || !is_float_table(table, rows, rows.width) ||
        !read_integers(ids_, tokens.copy, q_.ids) ||
        !find_padding_row(options_.padding_idx(), rows.count, tokens.padding))
      return false;
    tokens.weight = &table;
    tokens.ids = &ids_;
    q_.weight = table.const_data_ptr<float>();
    q_.weight_stride = rows.stride;
    q_.dim = rows.width;
    if (!options_.scale().is_none())
      q_.scale = static_cast<float>(embeddings_scale(options_, table));
    return lie_within(q_.ids, q_.tokens, rows.count);
  }

  bool plan_tables() {
    const bool types = weights_.token_types.defined();
    const bool types_first = options_.order() == embeddings::Order::TypesFirst;
    if (types && types_first && !plan_types()) return false;
    if (weights_.positions.defined() && !plan_positions()) return false;
    if (types && !types_first && !plan_types()) return false;
    if (options_.types_from_tokens() && options_.token_type_ids().defined() &&
        !plan_per_token(weights_.tokens, options_.token_type_ids(), options_.padding_idx()))
      return false;
    return !weights_.task_types.defined() ||
           plan_per_token(weights_.task_types, options_.task_type_ids(), std::nullopt);
  }

  bool plan_types() {
    return plan_per_token(weights_.token_types, options_.token_type_ids(),
                          options_.type_padding_idx());
  }

  // Fills in the table's part of the request; `rows` receives its number of rows.
  bool add_table(const at::Tensor& table, const std::optional<int64_t>& padding, int64_t& rows,
                 EmbeddingsTable*& to, kernel::Positions*& p) {
    const RowView view(table);
    to = &plan_.added[q_.tables];
    p = &q_.added[q_.tables++];
    if (!is_float_table(table, view, q_.dim) || !find_padding_row(padding, view.count, to->padding))
      return false;
    to->weight = &table;
    rows = view.count;
    p->table = table.const_data_ptr<float>();
    p->stride = view.stride;
    p->offset = 0;
    return true;
  }

  // `given` has a row for each token; undefined: row 0 for all.
  bool plan_per_token(const at::Tensor& table, const at::Tensor& given,
                      const std::optional<int64_t>& padding) {
    int64_t rows = 0;
    EmbeddingsTable* to = nullptr;
    kernel::Positions* p = nullptr;
    if (!add_table(table, padding, rows, to, p)) return false;
    if (!given.defined()) {
      to->rows = EmbeddingsRows::First;
      p->count = 1;
      return true;
    }
    p->count = q_.tokens;
    to->ids = &given;
    return given.sizes() == ids_.sizes() && read_integers(given, to->copy, p->ids) &&
           lie_within(p->ids, p->count, rows);
  }

  bool plan_positions() {
    int64_t rows = 0;
    EmbeddingsTable* to = nullptr;
    kernel::Positions* p = nullptr;
    if (!add_table(weights_.positions, options_.position_padding_idx(), rows, to, p)) return false;
    const at::IntArrayRef sizes = ids_.sizes();
    const int64_t length = sizes.back(), batch = q_.tokens / length;
    const at::Tensor& given = options_.position_ids();
    p->count = length;
    p->offset = options_.offset();
    to->repeats = batch > 1;
    to->rows = given.defined() ? EmbeddingsRows::Given : EmbeddingsRows::Consecutive;
    if (!given.defined()) return p->offset >= 0 && length <= rows && p->offset <= rows - length;
    to->ids = &given;
    const at::IntArrayRef of = given.sizes();
    if (of == sizes) {
      p->count = q_.tokens;
      to->repeats = false;
    } else if (of.empty() || of.back() != length || given.numel() != length ||
               of.size() > sizes.size()) {
      return false;
    }
    return p->offset == 0 && read_integers(given, to->copy, p->ids) &&
           lie_within(p->ids, p->count, rows);
  }

  bool plan_norm() {
    const at::Tensor& weight = weights_.norm_weight;
    if (!weight.defined() || options_.norm() == Norm::None) return true;
    const auto rounding = norm_rounding();
    if (!rounding || q_.dim > kernel::kEmbeddingsWidest || !is_norm_vector(weight) ||
        (weights_.norm_bias.defined() && !is_norm_vector(weights_.norm_bias)))
      return false;
    plan_.rounding = *rounding;
    q_.norm.weight = weight.const_data_ptr<float>();
    if (weights_.norm_bias.defined()) q_.norm.bias = weights_.norm_bias.const_data_ptr<float>();
    q_.norm.eps = static_cast<float>(options_.layer_norm_eps());
    return true;
  }

  bool plan_recording() {
    plan_.records_tables = is_recorded(weights_.tokens);
    for (int k = 0; k < q_.tables; ++k)
      plan_.records_tables = plan_.records_tables || is_recorded(*plan_.added[k].weight);
    plan_.records_norm =
        q_.norm.weight != nullptr && (plan_.records_tables || is_recorded(weights_.norm_weight) ||
                                      (q_.norm.bias != nullptr && is_recorded(weights_.norm_bias)));
    // The backward groups tokens by int32 index, and gives one gradient to each table.
    if (plan_.records_tables && (q_.tokens > std::numeric_limits<int32_t>::max() ||
                                 (options_.types_from_tokens() && has_type_ids())))
      return false;
    return !plan_.drops || can_draw_dropout_bits(at::kFloat);
  }

  bool has_type_ids() const { return options_.token_type_ids().defined(); }
  bool is_norm_vector(const at::Tensor& vector) const {
    return is_plain(vector) && vector.scalar_type() == at::kFloat && vector.dim() == 1 &&
           vector.sizes()[0] == q_.dim && vector.is_contiguous();
  }
  static bool lie_within(const kernel::Integers& ids, int64_t n, int64_t rows) {
    return kernels::chosen().gather.find_out_of_range(ids, n, rows) < 0;
  }

  const at::Tensor& ids_;
  const EncoderEmbeddingsWeights& weights_;
  const EncoderEmbeddingsFuncOptions& options_;
  EncoderEmbeddingsPlan& plan_;
  kernel::EmbeddingsRequest& q_;
};

}  // namespace

bool is_fusable(const at::Tensor& ids, const EncoderEmbeddingsWeights& weights,
                const EncoderEmbeddingsFuncOptions& options, EncoderEmbeddingsPlan& plan) {
  return torch_internals::dispatches_plainly() &&
         EmbeddingsPlanner(ids, weights, options, plan).plan();
}

}  // namespace posenc::functional
