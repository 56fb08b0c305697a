#include "posenc/positions/nn/grid_positional_encoding.h"

#include <ostream>

#include "core/print_fields.h"
#include "posenc/positions/functional/grid_positional_encoding.h"
#include "positions/nn/computed_table.h"
#include "positions/sinusoid/columns.h"

namespace posenc {
namespace {

bool is_buffer(const GridPositionalEncodingOptions& options) {
  return options.register_as() == GridPositionalEncodingOptions::RegisterAs::Buffer;
}

}  // namespace

GridPositionalEncodingImpl::GridPositionalEncodingImpl(GridPositionalEncodingOptions options_)
    : options(std::move(options_)) {
  GridPositionalEncodingImpl::reset();
}

void GridPositionalEncodingImpl::reset() {
  const auto& grid = options.sinusoid().grid();
  TORCH_CHECK_VALUE(!grid.empty(),
                    "[GridPositionalEncoding] the sinusoid must have a grid, as "
                    "preset(\"mae_2d\", dim, {{\"height\", 14}}) has");
  TORCH_CHECK_VALUE(!options.key().empty() && options.key().find('.') == std::string::npos,
                    "[GridPositionalEncoding] key must be a name without dots. Got `",
                    options.key(), "`");
  const torch::Tensor rows =
      module_table(options.sinusoid(), cells(options.sinusoid())).unsqueeze(0);  // (1, R, D)
  pos_embed = is_buffer(options) ? register_buffer(options.key(), rows)
                                 : register_parameter(options.key(), rows, /*requires_grad=*/false);
}

void GridPositionalEncodingImpl::pretty_print(std::ostream& stream) const {
  fields::print_module(stream, "GridPositionalEncoding", options,
                       GridPositionalEncodingOptions(SinusoidOptions(-1)));
}

TableRecipe GridPositionalEncodingImpl::table_recipe() const {
  return {options.key(), 1, pos_embed, options.sinusoid(), cells(options.sinusoid())};
}

torch::Tensor GridPositionalEncodingImpl::forward(const torch::Tensor& x) {
  return functional::grid_positional_encoding(x, pos_embed);
}

torch::Tensor GridPositionalEncodingImpl::add_to_patches(const torch::Tensor& x) {
  const int64_t before = options.sinusoid().cls_row() ? 1 : 0;
  return functional::grid_positional_encoding(x, pos_embed.slice(1, before));
}

}  // namespace posenc
