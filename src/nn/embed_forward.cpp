#include "nn/embed_forward.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/dropout.h>

#include "nn/layers.h"
#include "nn/positional_encoding_internals.h"
#include "posenc/functional/embed.h"
#include "posenc/functional/token_embedding.h"
#include "torch_internals/shortcut.h"

namespace posenc {
namespace {

using functional::EmbedFuncOptions;

torch::Tensor embed(const EmbedModule& module, const torch::Tensor& ids, const torch::Tensor& rows,
                    const EmbedFuncOptions& how) {
  const torch::Tensor& weight = module.tokens.weight;
  // Allocate a new output where embed_out() would throw or could not write in place.
  const auto is_plain = torch_internals::is_plain;
  const bool records =
      at::GradMode::is_enabled() && (weight.requires_grad() || rows.requires_grad());
  // Rows of a wider type make the sum wider, unless it is rounded to the tokens' type at the end.
  const bool rounds =
      how.precision() == Precision::Exact && at::isReducedFloatingType(weight.scalar_type());
  const bool widens = !rounds && c10::promoteTypes(weight.scalar_type(), rows.scalar_type()) !=
                                     weight.scalar_type();
  if (module.reuse == nullptr || records || widens || !torch_internals::dispatches_plainly() ||
      !is_plain(ids) || !is_plain(weight) || !is_plain(rows))
    return functional::embed(ids, weight, rows, how);
  at::DimVector sizes(ids.sizes());
  sizes.push_back(weight.size(1));
  const torch::Tensor last = module.reuse->take(sizes, weight.scalar_type());
  const torch::Tensor out = last.defined() ? functional::embed_out(last, ids, weight, rows, how)
                                           : functional::embed(ids, weight, rows, how);
  module.reuse->keep(out);
  return out;
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
      module.position, Places(ids.sizes(), position.batch_first(), offset, position_ids),
      weight.device(), Summing::RoundsOnce,
      [&] { functional::token_embedding(ids, weight); });  // a bad token lets no table grow
  // A half-precision table that is not the rounded exact one is added as it is.
  const bool half = at::isReducedFloatingType(found.rows->scalar_type());
  const auto how = EmbedFuncOptions()
                       .scale(module.scale)
                       .padding_idx(module.padding_idx)
                       .position(std::move(found.which))
                       .dropout(drops_all ? 0.0 : p)
                       .training(module.dropout.is_training())
                       .precision(half ? Precision::Reference : position.sinusoid().precision())
                       .sparse(module.tokens.options.sparse());
  const torch::Tensor out = embed(module, ids, *found.rows, how);
  return drops_all ? at::dropout(out, 1.0, module.dropout.is_training()) : out;
}

}  // namespace posenc
