#include "positions/nn/embed_module.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/dropout.h>

#include <utility>

#include "core/torch_internals/shortcut.h"
#include "posenc/positions/functional/embed.h"
#include "posenc/positions/functional/token_embedding.h"
#include "positions/nn/positional_encoding_internals.h"
#include "positions/nn/weights.h"

namespace posenc {
namespace {

using functional::EmbedFuncOptions;

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

// Makes rows that were computed for each position a table, of which each position reads its own.
void as_table(PositionRows& found, torch::IntArrayRef sizes) {
  torch::Tensor rows = found.rows->flatten(0, 1);
  found.which.position_ids(
      torch::arange(rows.size(0), rows.options().dtype(torch::kLong)).view(sizes));
  found.rows = c10::MaybeOwned<torch::Tensor>::owned(std::move(rows));
}

}  // namespace

torch::Tensor embed_forward(const EmbedModule& module, const torch::Tensor& ids, int64_t offset,
                            const torch::Tensor& position_ids) {
  const torch::Tensor& weight = module.tokens.weight;
  check_token_options(module.name, module.tokens.options);
  if (!ids.defined()) return functional::token_embedding(ids, weight);  // throws
  const PositionalEncodingOptions& position = module.position.options;
  const double p = module.dropout.options.p();
  const bool drops_all = p == 1.0;  // torch::nn::Dropout allows it
  PositionRows found = PositionalEncodingAccess::rows_for(
      module.position, PositionRequest(ids.sizes(), position.batch_first(), offset, position_ids),
      weight.device(), Summing::RoundsOnce,
      [&] { functional::token_embedding(ids, weight); });  // a bad token lets no table grow
  if (position.table_source() != TableSource::Buffer && found.rows->dim() == 3)
    as_table(found, ids.sizes());
  // A half-precision table that is not the rounded exact one is added as it is.
  const bool half = at::isReducedFloatingType(found.rows->scalar_type());
  const auto func_options =
      EmbedFuncOptions()
          .scale(module.scale)
          .padding_idx(module.padding_idx)
          .position(std::move(found.which))
          .dropout(drops_all ? 0.0 : p)
          .training(module.dropout.is_training())
          .precision(half ? Precision::Reference : position.sinusoid().precision())
          .sparse(module.tokens.options.sparse());
  const torch::Tensor out = embed(module, ids, *found.rows, func_options);
  return drops_all ? at::dropout(out, 1.0, module.dropout.is_training()) : out;
}

}  // namespace posenc
