#include "posenc/positions/functional/embed.h"

#include <ATen/core/grad_mode.h>

#include "core/check.h"
#include "core/torch_internals/profiled.h"
#include "core/torch_internals/shortcut.h"
#include "positions/functional/embed/composed.h"
#include "positions/functional/embed/fused.h"

namespace posenc::functional {
namespace {

constexpr EmbedNames kEmbed = {"embed", "posenc::embed_backward", "EmbedBackward"};

void check_apart(const at::Tensor& out, const at::Tensor& other, const char* name) {
  TORCH_CHECK_VALUE(!torch_internals::share_memory(out, other),
                    "[embed] out must not share memory with ", name);
}

void check_output(const at::Tensor& out, const at::Tensor& ids, const at::Tensor& weight,
                  const at::Tensor& table, const at::Tensor& position_ids) {
  TORCH_CHECK_VALUE(out.defined(), "[embed] out must be a defined tensor");
  TORCH_CHECK_VALUE(weight.dim() == 2,
                    "[TokenEmbedding] weight must be (vocab_size, d_model). Got ", weight.sizes());
  at::DimVector sizes(ids.sizes());
  sizes.push_back(weight.size(1));
  TORCH_CHECK_VALUE(out.sizes() == sizes, "[embed] out must be (..., D) = ", at::IntArrayRef(sizes),
                    ". Got ", out.sizes());
  TORCH_CHECK_TYPE(out.scalar_type() == weight.scalar_type(), "[embed] out must have the type of ",
                   "weight, ", weight.scalar_type(), ". Got ", out.scalar_type());
  TORCH_CHECK_VALUE(out.device() == weight.device(), "[embed] out must be on the weight's device ",
                    weight.device(), ". Got ", out.device());
  TORCH_CHECK_TYPE(out.layout() == at::kStrided, "[embed] out must be strided. Got ", out.layout());
  const bool recorded = (out.requires_grad() || weight.requires_grad() || table.requires_grad()) &&
                        at::GradMode::is_enabled();
  TORCH_CHECK_VALUE(!recorded,
                    "[embed] embed_out() records no gradient: no tensor may require one, or call "
                    "it under torch::NoGradGuard");
  const char* const rule = torch_internals::write_violation(out);
  TORCH_CHECK_VALUE(rule == nullptr, "[embed] out ", rule);
  check_apart(out, weight, "weight");
  check_apart(out, table, "table");
  check_apart(out, ids, "ids");
  check_apart(out, position_ids, "position_ids");
}

void check_arguments(const at::Tensor& table, const EmbedFuncOptions& options) {
  check_dropout("embed", options.dropout());
  TORCH_CHECK_VALUE(table.defined(), "[embed] there must be a table of positions");
}

}  // namespace

at::Tensor embed_or_look_up(const at::Tensor& ids, const at::Tensor& weight,
                            const at::Tensor& table, const EmbedFuncOptions& options) {
  EmbedPlan plan;
  if (!is_fusable(ids, weight, table, options, plan))
    return embed_composed(ids, weight, table, options);
  const torch_internals::Profiled profiled("posenc::embed", ids, weight, table);
  return embed_fused(plan, kEmbed, options.dropout());
}

at::Tensor embed(const at::Tensor& ids, const at::Tensor& weight, const at::Tensor& table,
                 const EmbedFuncOptions& options) {
  check_arguments(table, options);
  return embed_or_look_up(ids, weight, table, options);
}

const at::Tensor& embed_out(const at::Tensor& out, const at::Tensor& ids, const at::Tensor& weight,
                            const at::Tensor& table, const EmbedFuncOptions& options) {
  check_arguments(table, options);
  check_output(out, ids, weight, table, options.position().position_ids());
  EmbedPlan plan;
  if (torch_internals::is_plain(out) && out.is_contiguous() &&
      is_fusable(ids, weight, table, options, plan)) {
    const torch_internals::Profiled profiled("posenc::embed_out", ids, weight, table);
    embed_fused(plan, kEmbed, options.dropout(), out);
  } else {
    out.copy_(embed(ids, weight, table, options));
  }
  return out;
}

}  // namespace posenc::functional
