#include "posenc/positions/functional/encoder_embeddings.h"

#include <ATen/ops/linear.h>

#include "core/check.h"
#include "core/torch_internals/profiled.h"
#include "positions/functional/embed/composed.h"
#include "positions/functional/embed/fused.h"

namespace posenc::functional {
namespace {

constexpr EmbedNames kEncoderEmbeddings = {
    "EncoderEmbeddings", "posenc::encoder_embeddings_backward", "EncoderEmbeddingsBackward",
    "posenc::encoder_embeddings_norm_backward", "EncoderEmbeddingsNormBackward"};

void check_embeddings_table(const char* name, const at::Tensor& table, int64_t width) {
  if (!table.defined()) return;
  TORCH_CHECK_VALUE(table.dim() == 2 && table.size(1) == width, "[EncoderEmbeddings] ", name,
                    " must be (rows, ", width, "). Got ", table.sizes());
}

void check_embeddings_vector(const char* name, const at::Tensor& vector, int64_t width) {
  if (!vector.defined()) return;
  TORCH_CHECK_VALUE(vector.dim() == 1 && vector.size(0) == width, "[EncoderEmbeddings] ", name,
                    " must be (", width, "). Got ", vector.sizes());
}

void check_box_tables(const EncoderEmbeddingsWeights& weights, int64_t width) {
  const std::pair<const char*, const at::Tensor&> tables[] = {{"x_positions", weights.x_positions},
                                                              {"y_positions", weights.y_positions},
                                                              {"h_positions", weights.h_positions},
                                                              {"w_positions", weights.w_positions}};
  const bool is_sum = !boxes_are_side_by_side(weights, width);
  for (const auto& [name, table] : tables) {
    const bool is_edge = &table == &weights.x_positions || &table == &weights.y_positions;
    const at::Tensor& like = is_edge ? weights.x_positions : weights.h_positions;
    check_embeddings_table(name, table, is_sum ? width : like.size(1));
    TORCH_CHECK_VALUE(table.defined() == weights.x_positions.defined(),
                      "[EncoderEmbeddings] x_positions, y_positions, h_positions and w_positions "
                      "must all be there, or none. Got ",
                      table.defined() ? "no x_positions" : std::string("no ") + name);
  }
}

void check_boxes(const at::Tensor& ids, const EncoderEmbeddingsWeights& weights,
                 const at::Tensor& bbox) {
  if (!bbox.defined()) return;
  TORCH_CHECK_VALUE(weights.x_positions.defined(),
                    "[EncoderEmbeddings] these embeddings have no boxes. Got bbox ", bbox.sizes());
  at::DimVector expected(ids.sizes());
  expected.push_back(4);
  TORCH_CHECK_VALUE(bbox.sizes() == expected, "[EncoderEmbeddings] bbox must be ",
                    at::IntArrayRef(expected), ", x0, y0, x1 and y1 of each token. Got ",
                    bbox.sizes());
  TORCH_CHECK_TYPE(at::isIntegralType(bbox.scalar_type(), /*includeBool=*/false),
                   "[EncoderEmbeddings] bbox must be integers. Got ", bbox.scalar_type());
}

void check_weights(const EncoderEmbeddingsWeights& weights,
                   const EncoderEmbeddingsFuncOptions& options) {
  TORCH_CHECK_VALUE(weights.tokens.defined() && weights.tokens.dim() == 2,
                    "[EncoderEmbeddings] tokens must be (V, E). Got ",
                    weights.tokens.defined() ? c10::str(weights.tokens.sizes()) : "no tensor");
  const int64_t narrow = weights.tokens.sizes()[1];
  const at::Tensor& projection = weights.projection_weight;
  int64_t wide = narrow;
  if (projection.defined()) {
    const int64_t width = options.trigram_input() ? 3 * narrow : narrow;
    TORCH_CHECK_VALUE(projection.dim() == 2 && projection.size(1) == width,
                      "[EncoderEmbeddings] projection_weight must be (D, ", width, "). Got ",
                      projection.sizes());
    wide = projection.sizes()[0];
  }
  const bool first = options.projection() == embeddings::Projection::Tokens;
  TORCH_CHECK_VALUE(!options.trigram_input() || (first && projection.defined()),
                    "[EncoderEmbeddings] trigram_input must be with a projection_weight and "
                    "Projection::Tokens. Got neither or one");
  const bool before_norm = first ||
                           (options.projection() == embeddings::Projection::Sum &&
                            options.norm() != embeddings::Norm::AfterTokens) ||
                           (options.projection() == embeddings::Projection::BeforeDropout &&
                            options.norm() == embeddings::Norm::AfterDropout);
  check_embeddings_table("positions", weights.positions, first ? wide : narrow);
  check_embeddings_table("token_types", weights.token_types, first ? wide : narrow);
  check_embeddings_table("task_types", weights.task_types, first ? wide : narrow);
  check_box_tables(weights, first ? wide : narrow);
  check_embeddings_vector("norm_weight", weights.norm_weight, before_norm ? wide : narrow);
  check_embeddings_vector("norm_bias", weights.norm_bias, before_norm ? wide : narrow);
  check_embeddings_vector("projection_bias", weights.projection_bias, wide);
}

// `what` is in a table if it is `known`.
void check_as_ids(const char* name, const char* what, const at::Tensor& given,
                  const at::Tensor& ids, bool known) {
  if (!given.defined()) return;
  TORCH_CHECK_VALUE(known, "[EncoderEmbeddings] these embeddings have no ", what, ". Got ", name,
                    " ", given.sizes());
  TORCH_CHECK_VALUE(given.sizes() == ids.sizes(), "[EncoderEmbeddings] ", name,
                    " must have the shape of the ids ", ids.sizes(), ". Got ", given.sizes());
}

void check_positions(const at::Tensor& ids, const at::Tensor& table,
                     const EncoderEmbeddingsFuncOptions& options) {
  const at::Tensor& given = options.position_ids();
  const at::IntArrayRef sizes = ids.sizes();
  const int64_t first = options.offset();
  if (given.defined()) {
    TORCH_CHECK_VALUE(table.defined(),
                      "[EncoderEmbeddings] these embeddings have no positions. Got position_ids ",
                      given.sizes());
    TORCH_CHECK_VALUE(first == 0,
                      "[EncoderEmbeddings] position_ids and an offset exclude each other. Got ",
                      first);
    const at::IntArrayRef of = given.sizes();
    const bool one_row = of.size() == 1 || (of.size() == 2 && of[0] == 1 && sizes.size() == 2);
    TORCH_CHECK_VALUE(of == sizes || (one_row && of.back() == sizes.back()),
                      "[EncoderEmbeddings] position_ids must be (L), (1, L) or (B, L) for ids ",
                      sizes, ". Got ", of);
  } else if (table.defined()) {
    TORCH_CHECK_VALUE(first >= 0, "[EncoderEmbeddings] offset must not be negative. Got ", first);
    const int64_t rows = table.sizes()[0], length = sizes.back();
    TORCH_CHECK_INDEX(length <= rows && first <= rows - length,
                      "[EncoderEmbeddings] the table has ", rows, " positions. Got ", length,
                      " tokens", first == 0 ? c10::str("") : c10::str(" from position ", first));
  }
}

}  // namespace

at::Tensor encoder_embeddings(const at::Tensor& ids, const EncoderEmbeddingsWeights& weights,
                              const EncoderEmbeddingsFuncOptions& options) {
  check_dropout("EncoderEmbeddings", options.dropout());
  TORCH_CHECK_VALUE(ids.defined() && (ids.dim() == 1 || ids.dim() == 2),
                    "[EncoderEmbeddings] ids must be (B, L) or (L). Got ",
                    ids.defined() ? c10::str(ids.sizes()) : "no tensor");
  check_weights(weights, options);
  check_as_ids("token_type_ids", "token types", options.token_type_ids(), ids,
               weights.token_types.defined() || options.types_from_tokens());
  check_as_ids("task_type_ids", "task types", options.task_type_ids(), ids,
               weights.task_types.defined());
  check_boxes(ids, weights, options.bbox());
  check_positions(ids, weights.positions, options);
  EmbedPlan plan;
  if (!is_fusable(ids, weights, options, plan))
    return encoder_embeddings_composed(ids, weights, options);
  at::Tensor x;
  {
    const torch_internals::Profiled profiled("posenc::encoder_embeddings", ids, weights.tokens);
    x = embed_fused(plan, kEncoderEmbeddings, options.dropout());
  }
  if (!weights.projection_weight.defined() || options.projection() == embeddings::Projection::None)
    return x;
  return at::linear(x, weights.projection_weight, weights.projection_bias);
}

}  // namespace posenc::functional
