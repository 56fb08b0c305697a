#include "nn/embed_module.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/dropout.h>

#include <algorithm>

#include "core/check.h"
#include "core/tensors.h"
#include "nn/positional_encoding_internals.h"
#include "nn/weights.h"
#include "posenc/functional/embed.h"
#include "posenc/functional/token_embedding.h"
#include "torch_internals/shortcut.h"
#include "torch_internals/version.h"

namespace posenc {
namespace {

using functional::EmbedFuncOptions;
using functional::PositionalEncodingFuncOptions;

// Sequence length of ids (B, L), (L, B) or (L); 0 for other shapes, which embed() rejects.
int64_t sequence_length(const torch::Tensor& ids, bool batch_first) {
  if (!ids.defined() || ids.dim() < 1 || ids.dim() > 2) return 0;
  return ids.size(ids.dim() == 2 && batch_first ? 1 : 0);
}

torch::Tensor embed(const EmbedModule& module, const torch::Tensor& ids, const torch::Tensor& rows,
                    const EmbedFuncOptions& func_options) {
  const torch::Tensor& weight = module.tokens.weight;
  // Allocate a new output where embed_out() would throw or could not write in place.
  const auto is_plain = torch_internals::is_plain;
  const bool records =
      at::GradMode::is_enabled() && (weight.requires_grad() || rows.requires_grad());
  // Rows of a wider type make the sum wider, unless it is rounded to the tokens' type at the end.
  const bool rounds = func_options.precision() == Precision::Exact &&
                      at::isReducedFloatingType(weight.scalar_type());
  const bool widens = !rounds && c10::promoteTypes(weight.scalar_type(), rows.scalar_type()) !=
                                     weight.scalar_type();
  if (module.reuse == nullptr || records || widens || !torch_internals::dispatches_plainly() ||
      !is_plain(ids) || !is_plain(weight) || !is_plain(rows))
    return functional::embed(ids, weight, rows, func_options);
  at::DimVector sizes(ids.sizes());
  sizes.push_back(weight.size(1));
  const torch::Tensor last = module.reuse->take(sizes, weight.scalar_type());
  const torch::Tensor out = last.defined()
                                ? functional::embed_out(last, ids, weight, rows, func_options)
                                : functional::embed(ids, weight, rows, func_options);
  module.reuse->keep(out);
  return out;
}

// Adds rows of the position table.
torch::Tensor embed_with_table(const EmbedModule& module, const torch::Tensor& ids, int64_t offset,
                               const torch::Tensor& position_ids, EmbedFuncOptions& func_options) {
  func_options.position().offset(offset).position_ids(position_ids);
  const bool grows = module.position.options.grow() && !position_ids.defined() && offset >= 0;
  // A larger offset, which is rejected later, could overflow.
  const int64_t length = sequence_length(ids, func_options.position().batch_first());
  const auto held = PositionalEncodingAccess::hold(
      module.position, grows ? std::min(offset, kPositionLimit) + length : 0);
  const torch::Tensor& rows = PositionalEncodingAccess::rows_to_add(module.position);
  // A half-precision table that is not the rounded exact one is added as it is.
  if (at::isReducedFloatingType(rows.scalar_type())) func_options.precision(Precision::Reference);
  return embed(module, ids, rows, func_options);
}

// For a table that may grow to the largest of the given positions. Reading the positions up front
// would synchronise the device, so the table only grows after a look-up has failed, and not if the
// look-up failed because of a token.
torch::Tensor embed_with_growth(const EmbedModule& module, const torch::Tensor& ids,
                                const torch::Tensor& position_ids, EmbedFuncOptions& func_options) {
  try {
    return embed_with_table(module, ids, 0, position_ids, func_options);
  } catch (const c10::IndexError&) {
    if (position_ids.numel() == 0) throw;  // the error is about a token
    const int64_t last = position_ids.max().item<int64_t>();
    if (last < module.position.table(1).size(1)) throw;  // a negative position, or a token
    functional::token_embedding(ids, module.tokens.weight);
    module.position.table(last + 1);
  }
  return embed_with_table(module, ids, 0, position_ids, func_options);
}

// Computes the rows for these positions: (L, D), or (..., D) in the layout of the ids.
torch::Tensor embed_with_computed_rows(const EmbedModule& module, const torch::Tensor& ids,
                                       int64_t offset, const torch::Tensor& position_ids,
                                       EmbedFuncOptions& func_options) {
  const int64_t length = sequence_length(ids, func_options.position().batch_first());
  const torch::Tensor rows =
      sent_to(PositionalEncodingAccess::computed_rows(module.position, ids.sizes(), length, offset,
                                                      position_ids),
              module.tokens.weight.device());
  if (rows.dim() == 2) return embed(module, ids, rows, func_options);
  func_options.position(PositionalEncodingFuncOptions());
  const torch::Tensor flat = embed(module, ids.reshape({-1}), rows.flatten(0, 1), func_options);
  return torch_internals::reshaped_owner(flat, {ids.size(0), ids.size(1), flat.size(1)});
}

}  // namespace

torch::Tensor embed_forward(const EmbedModule& module, const torch::Tensor& ids, int64_t offset,
                            const torch::Tensor& position_ids) {
  check_token_options(module.name, module.tokens.options);
  if (!ids.defined()) return functional::token_embedding(ids, module.tokens.weight);  // throws
  const PositionalEncodingOptions& position = module.position.options;
  const double p = module.dropout.options.p();
  const bool drops_all = p == 1.0;  // torch::nn::Dropout allows it
  auto func_options = EmbedFuncOptions()
                          .scale(module.scale)
                          .padding_idx(module.padding_idx)
                          .dropout(drops_all ? 0.0 : p)
                          .training(module.dropout.is_training())
                          .precision(position.sinusoid().precision())
                          .sparse(module.tokens.options.sparse());
  func_options.position().batch_first(position.batch_first());
  const torch::Tensor out =
      position.table_source() != TableSource::Buffer
          ? embed_with_computed_rows(module, ids, offset, position_ids, func_options)
      : position.grow() && position_ids.defined() && offset == 0
          ? embed_with_growth(module, ids, position_ids, func_options)
          : embed_with_table(module, ids, offset, position_ids, func_options);
  return drops_all ? at::dropout(out, 1.0, module.dropout.is_training()) : out;
}

void print(std::ostream& stream, const Scale& scale) {
  if (scale.is_none()) return;
  stream << ", scale=";
  if (scale.is_sqrt_dim()) {
    stream << "sqrt(d_model)";
  } else {
    stream << scale.factor(0);
  }
}

void print(std::ostream& stream, EmbeddingInit init, EmbeddingInit by_default) {
  if (init == by_default) return;
  const bool standard = init == EmbeddingInit::StandardNormal;
  stream << ", embedding_init=" << (standard ? "StandardNormal" : "InverseSqrtDim");
}

void print(std::ostream& stream, const PositionalEncodingOptions& options) {
  stream << "max_len=" << options.max_len();
  if (options.table_source() == TableSource::Factored) stream << ", table_source=factored";
  if (options.table_source() == TableSource::OnTheFly) stream << ", table_source=on_the_fly";
  if (options.dropout() > 0.0) stream << ", dropout=" << options.dropout();
  if (!options.batch_first()) stream << ", batch_first=false";
  if (options.grow()) stream << ", grow=true";
}

}  // namespace posenc
