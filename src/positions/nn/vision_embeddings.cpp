#include "posenc/positions/nn/vision_embeddings.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/dropout.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/gather.h>
#include <ATen/ops/where.h>

#include <ostream>
#include <vector>

#include "core/print_fields.h"
#include "posenc/core/skip_init.h"
#include "positions/functional/resize_positions/interpolate.h"
#include "positions/nn/computed_table.h"
#include "positions/nn/weights.h"
#include "positions/sinusoid/columns.h"

namespace posenc {
namespace {

using functional::PatchGrid;
using torch::Tensor;
using vision::PositionRows;
using vision::PositionTable;

PatchGrid patch_grid(const VisionEmbeddingsOptions& o, int64_t height, int64_t width) {
  const int64_t down = o.pad_patches() ? o.patch_height() - 1 : 0;
  const int64_t across = o.pad_patches() ? o.patch_width() - 1 : 0;
  return {(height + down) / o.patch_height(), (width + across) / o.patch_width()};
}

// A whole number of patches, with zeros for what is missing.
Tensor with_whole_patches(const Tensor& pixels, const VisionEmbeddingsOptions& o) {
  if (!o.pad_patches()) return pixels;
  const PatchGrid grid = patch_grid(o, pixels.size(2), pixels.size(3));
  const int64_t down = grid.height * o.patch_height() - pixels.size(2);
  const int64_t across = grid.width * o.patch_width() - pixels.size(3);
  return down + across == 0 ? pixels : at::constant_pad_nd(pixels, {0, across, 0, down});
}

void check_pixels(const Tensor& pixels, const VisionEmbeddingsOptions& o, at::ScalarType dtype) {
  TORCH_CHECK_VALUE(pixels.dim() == 4, "[VisionEmbeddings] pixel_values must be (B, C, H, W). Got ",
                    pixels.sizes());
  TORCH_CHECK_VALUE(pixels.size(1) == o.num_channels(),
                    "[VisionEmbeddings] pixel_values must have the ", o.num_channels(),
                    " channels of the options. Got ", pixels.size(1), " in ", pixels.sizes());
  TORCH_CHECK_TYPE(o.cast_pixels() || pixels.scalar_type() == dtype,
                   "[VisionEmbeddings] pixel_values must have the dtype of the weight, ", dtype,
                   ". Got ", pixels.scalar_type());
  const int64_t height = pixels.size(2), width = pixels.size(3);
  TORCH_CHECK_VALUE(!o.own_size() || (height == o.image_height() && width == o.image_width()),
                    "[VisionEmbeddings] images must have the ", o.image_height(), "x",
                    o.image_width(), " pixels of the options. Got ", height, "x", width);
  const bool has_patch = o.pad_patches() ? height > 0 && width > 0
                                         : height >= o.patch_height() && width >= o.patch_width();
  TORCH_CHECK_VALUE(has_patch, "[VisionEmbeddings] images must have at least one patch of ",
                    o.patch_height(), "x", o.patch_width(), " pixels. Got ", height, "x", width);
  TORCH_CHECK_VALUE(
      !o.whole_patches() || (height % o.patch_height() == 0 && width % o.patch_width() == 0),
      "[VisionEmbeddings] images must be a whole number of patches of ", o.patch_height(), "x",
      o.patch_width(), " pixels. Got ", height, "x", width);
}

void check_per_patch(const char* name, const Tensor& given, const Tensor& patches) {
  TORCH_CHECK_VALUE(given.sizes() == patches.sizes().slice(0, 2), "[VisionEmbeddings] ", name,
                    " must have a number for each patch, ", patches.sizes().slice(0, 2), ". Got ",
                    given.sizes());
}

// `patches` (B, N, D) with the mask token where the mask is true.
Tensor masked(const Tensor& patches, const Tensor& mask, const Tensor& token,
              const VisionEmbeddingsOptions& o) {
  if (!mask.defined()) return patches;
  TORCH_CHECK_VALUE(
      token.defined(),
      "[VisionEmbeddings] bool_masked_pos needs a mask token, which these options do not "
      "have");
  TORCH_CHECK_TYPE(mask.scalar_type() == at::kBool,
                   "[VisionEmbeddings] bool_masked_pos must be bool. Got ", mask.scalar_type());
  check_per_patch("bool_masked_pos", mask, patches);
  const Tensor per_patch = mask.unsqueeze(-1);  // (B, N, 1)
  if (o.mask_rule() == vision::MaskRule::Select) {
    const Tensor one = token.to(patches.scalar_type());
    return at::where(per_patch, token.dim() == 2 ? one.unsqueeze(0) : one, patches);
  }
  const Tensor tokens = token.expand({patches.size(0), patches.size(1), -1});
  const Tensor share = per_patch.to(tokens.scalar_type());
  return patches * (1 - share) + tokens * share;
}

// Keeps a fraction 1 - mask_ratio of the patches, those with the least noise, in the order of their
// noise.
Tensor kept(const Tensor& patches, const Tensor& noise, double mask_ratio) {
  TORCH_CHECK_TYPE(noise.is_floating_point(),
                   "[VisionEmbeddings] noise must be floating-point. Got ", noise.scalar_type());
  check_per_patch("noise", noise, patches);
  const auto count = static_cast<double>(patches.size(1)) * (1 - mask_ratio);
  const Tensor chosen = noise.argsort(int64_t{1}, /*descending=*/false)
                            .slice(1, 0, static_cast<int64_t>(count))
                            .unsqueeze(-1);
  return at::gather(patches, 1, chosen.repeat({1, 1, patches.size(2)}));
}

Tensor joined(std::vector<Tensor> parts) {
  return parts.size() == 1 ? parts[0] : at::cat(parts, /*dim=*/1);
}

std::vector<Tensor> followed_by(std::vector<Tensor> tokens, const std::vector<Tensor>& more) {
  tokens.insert(tokens.end(), more.begin(), more.end());
  return tokens;
}

// The tokens before the patches, (B, n, D) each; those that have positions come first.
struct Prefix {
  std::vector<Tensor> with_positions, without;
};

Prefix prefix_of(const VisionEmbeddingsImpl& embeddings, int64_t batch) {
  const PositionRows rows = embeddings.options.position_rows();
  const bool positions = embeddings.options.position_table() != PositionTable::None;
  Prefix prefix;
  const auto add = [&](const Tensor& token, bool has_position) {
    if (!token.defined()) return;
    const Tensor each = token.dim() == 1 ? token.expand({batch, 1, -1})  // (D)
                                         : token.expand({batch, -1, -1});
    (has_position && positions ? prefix.with_positions : prefix.without).push_back(each);
  };
  add(embeddings.class_token, rows != PositionRows::Patches);
  add(embeddings.distillation_token, rows != PositionRows::Patches);
  add(embeddings.register_tokens, rows == PositionRows::AllTokens);
  return prefix;
}

// Concatenates and adds in the systems' order, on which the order of the gradients' sums depends.
Tensor sequence(const Prefix& prefix, const Tensor& patches, const Tensor& positions) {
  Tensor x = joined(followed_by(prefix.with_positions, {patches}));
  if (positions.defined()) x = x + positions;
  if (prefix.without.empty()) return x;
  if (prefix.with_positions.empty()) return joined(followed_by(prefix.without, {x}));
  const int64_t before = x.size(1) - patches.size(1);
  std::vector<Tensor> parts = followed_by({x.slice(1, 0, before)}, prefix.without);
  return joined(followed_by(std::move(parts), {x.slice(1, before)}));
}

// MAE's sequence: patches are dropped after their positions are added, and before the class token
// is prepended.
Tensor sequence_of_kept(const Prefix& prefix, const Tensor& patches, const Tensor& positions,
                        const Tensor& noise, double mask_ratio) {
  const int64_t before = positions.defined() ? positions.size(1) - patches.size(1) : 0;
  const Tensor placed = positions.defined() ? patches + positions.slice(1, before) : patches;
  const Tensor some = kept(placed, noise, mask_ratio);
  if (prefix.with_positions.empty()) return joined(followed_by(prefix.without, {some}));
  const Tensor head = joined(prefix.with_positions) + positions.slice(1, 0, before);
  return joined(followed_by(followed_by({head}, prefix.without), {some}));
}

}  // namespace

VisionEmbeddingsImpl::VisionEmbeddingsImpl(VisionEmbeddingsOptions options_)
    : options(std::move(options_)) {
  VisionEmbeddingsImpl::reset();
}

void VisionEmbeddingsImpl::reset() {
  options.validate();
  const vision::Names& names = options.names();
  const int64_t width = options.d_model();
  const auto token = [&](const std::string& name, int64_t count, int64_t dim) {
    std::vector<int64_t> shape = {1, count, width};
    return register_parameter(name, torch::empty(at::IntArrayRef(shape).slice(3 - dim)));
  };
  if (options.class_tokens() > 0)
    class_token = token(names.class_token, options.class_tokens(), options.class_token_dim());
  if (options.mask_token()) mask_token = token(names.mask_token, 1, options.mask_token_dim());
  if (options.register_tokens())
    register_tokens = token(names.register_tokens, *options.register_tokens(), 3);
  if (options.distillation_token()) distillation_token = token(names.distillation_token, 1, 3);
  const size_t dot = names.patches.find('.');
  patches = register_module(
      names.patches.substr(0, dot),
      PatchProjection(options, dot == std::string::npos ? "" : names.patches.substr(dot + 1)));
  register_positions();
  if (options.norm())
    norm = register_module(names.norm,
                           LayerNorm(LayerNormOptions(width).eps(options.layer_norm_eps())));
  dropout = register_module("dropout", torch::nn::Dropout(options.dropout()));
  if (!SkipInit::is_active()) reset_parameters();
}

void VisionEmbeddingsImpl::register_positions() {
  const std::string& name = options.names().positions;
  const PatchGrid grid = patch_grid(options, options.image_height(), options.image_width());
  const int64_t rows = options.position_prefix() + grid.patches();
  if (options.sinusoid()) {
    const SinusoidOptions& sinusoid = *options.sinusoid();
    position_table = register_parameter(name, module_table(sinusoid, cells(sinusoid)).unsqueeze(0),
                                        /*requires_grad=*/false);
  } else if (options.position_table() == PositionTable::Parameter) {
    const bool by_rows = options.position_table_dim() == 4;
    position_table = register_parameter(
        name, by_rows ? torch::empty({1, grid.height, grid.width, options.d_model()})
                      : torch::empty({1, rows, options.d_model()}));
  } else if (options.position_table() == PositionTable::Embedding) {
    const SkipInit skip;
    position_embedding =
        register_module(name, make_embedding(torch::nn::EmbeddingOptions(rows, options.d_model())));
  }
}

void VisionEmbeddingsImpl::reset_parameters() {
  patches->reset_parameters();
  const double deviation = options.initializer_range();
  if (class_token.defined()) truncated_normal_(class_token, deviation);
  if (distillation_token.defined()) truncated_normal_(distillation_token, deviation);
  if (register_tokens.defined()) zero_weights_(register_tokens);
  if (mask_token.defined()) zero_weights_(mask_token);
  if (position_embedding) truncated_normal_(position_embedding->weight, deviation);
  if (position_table.defined() && !options.sinusoid()) truncated_normal_(position_table, deviation);
  if (norm) norm->reset_parameters();
}

Tensor VisionEmbeddingsImpl::positions(int64_t height, int64_t width) const {
  if (options.position_table() == PositionTable::None) return {};
  const bool own = height == options.image_height() && width == options.image_width();
  const PositionResize rule = options.resize();
  TORCH_CHECK_VALUE(own || rule != PositionResize::Refuse, "[VisionEmbeddings] images must have ",
                    options.image_height(), "x", options.image_width(),
                    " pixels, as PositionResize::Refuse leaves the positions as they are. Got ",
                    height, "x", width);
  const Tensor table = position_embedding          ? position_embedding->weight.unsqueeze(0)
                       : position_table.dim() == 4 ? position_table.flatten(1, 2)
                                                   : position_table;
  const int64_t prefix = options.position_prefix(), rows = table.size(1) - prefix;
  const PatchGrid to = patch_grid(options, height, width);
  const PatchGrid from = functional::knows_old_grid(rule)
                             ? patch_grid(options, options.image_height(), options.image_width())
                             : functional::square_grid(rows);
  if ((own && !options.resize_always()) ||
      functional::keeps_positions(rule, rows, from, to, height == width)) {
    if (!position_embedding) return table;
    // Looks up all rows, as the system does, for the same gradient.
    return at::embedding(position_embedding->weight,
                         at::arange(table.size(1), table.options().dtype(at::kLong)).unsqueeze(0));
  }
  return functional::interpolate_positions("VisionEmbeddings", table, rule, prefix, from, to);
}

relative::Grid VisionEmbeddingsImpl::grid(int64_t height, int64_t width) const {
  const PatchGrid own = patch_grid(options, height, width);
  return {own.height, own.width};
}

Tensor VisionEmbeddingsImpl::forward(const Tensor& pixel_values,
                                     const VisionEmbeddingsInputs& inputs) {
  check_pixels(pixel_values, options, patches->weight().scalar_type());
  const Tensor added = positions(pixel_values.size(2), pixel_values.size(3));
  const Tensor projected = patches->forward(with_whole_patches(pixel_values, options));
  const Tensor each = masked(options.patch_norm() ? norm->forward(projected) : projected,
                             inputs.bool_masked_pos(), mask_token, options);
  const Prefix prefix = prefix_of(*this, each.size(0));
  Tensor x = inputs.noise().defined()
                 ? sequence_of_kept(prefix, each, added, inputs.noise(), options.mask_ratio())
                 : sequence(prefix, each, added);
  // at::dropout keeps the layout of x, which is not contiguous without a class token; the layout of
  // its gradient decides the order of the sums in earlier gradients.
  x = at::dropout(x, dropout->options.p(), dropout->is_training());
  return norm && !options.patch_norm() ? norm->forward(x) : x;
}

void VisionEmbeddingsImpl::pretty_print(std::ostream& stream) const {
  fields::print_module(stream, "VisionEmbeddings", options, VisionEmbeddingsOptions(-1, -1, -1));
}

}  // namespace posenc
