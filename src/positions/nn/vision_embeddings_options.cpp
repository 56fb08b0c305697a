#include "posenc/positions/nn/vision_embeddings_options.h"

#include <c10/util/Exception.h>

#include "core/check.h"
#include "positions/sinusoid/columns.h"

namespace posenc {
namespace {

void check_name(const char* what, const std::string& name) {
  TORCH_CHECK_VALUE(!name.empty() && name.find('.') == std::string::npos,
                    "[VisionEmbeddings] the name of ", what, " must be one without dots. Got `",
                    name, "`");
}

void check_tokens(const VisionEmbeddingsOptions& o) {
  TORCH_CHECK_VALUE(o.class_tokens() >= 0,
                    "[VisionEmbeddings] class_tokens must not be negative. Got ", o.class_tokens());
  TORCH_CHECK_VALUE(o.class_token_dim() == 3 || (o.class_token_dim() == 1 && o.class_tokens() == 1),
                    "[VisionEmbeddings] class_token_dim must be 3, or 1 for one class token. Got ",
                    o.class_token_dim(), " for ", o.class_tokens());
  TORCH_CHECK_VALUE(o.mask_token_dim() == 2 || o.mask_token_dim() == 3,
                    "[VisionEmbeddings] mask_token_dim must be 2 or 3. Got ", o.mask_token_dim());
  TORCH_CHECK_VALUE(o.register_tokens().value_or(0) >= 0,
                    "[VisionEmbeddings] register_tokens must not be negative. Got ",
                    o.register_tokens().value_or(0));
}

void check_sinusoid(const VisionEmbeddingsOptions& o, int64_t rows) {
  if (!o.sinusoid()) return;
  TORCH_CHECK_VALUE(o.position_table() == vision::PositionTable::Parameter,
                    "[VisionEmbeddings] a sinusoid needs PositionTable::Parameter");
  const int64_t had = cells(*o.sinusoid()) + (o.sinusoid()->cls_row() ? 1 : 0);
  const int64_t width = o.sinusoid()->channels();
  TORCH_CHECK_VALUE(had == rows && width == o.d_model(),
                    "[VisionEmbeddings] the sinusoid must have a row for each of the ", rows,
                    " tokens with a position, of width ", o.d_model(), ". Got ", had,
                    " rows of width ", width);
}

void check_maps(const VisionEmbeddingsOptions& o) {
  TORCH_CHECK_VALUE(!o.patch_norm() || o.norm(),
                    "[VisionEmbeddings] patch_norm(true) must be with norm(true)");
  TORCH_CHECK_VALUE(!o.pad_patches() || !o.whole_patches(),
                    "[VisionEmbeddings] pad_patches must be false with whole_patches. Got true");
  const bool is_map = o.position_table() == vision::PositionTable::Parameter && !o.sinusoid() &&
                      o.position_prefix() == 0;
  TORCH_CHECK_VALUE(o.position_table_dim() == 3 || (o.position_table_dim() == 4 && is_map),
                    "[VisionEmbeddings] position_table_dim must be 3, or 4 for a parameter of the "
                    "patches alone. Got ",
                    o.position_table_dim());
}

void check_names(const VisionEmbeddingsOptions& o) {
  const vision::Names& names = o.names();
  if (o.class_tokens() > 0) check_name("the class token", names.class_token);
  if (o.distillation_token()) check_name("the distillation token", names.distillation_token);
  if (o.register_tokens()) check_name("the register tokens", names.register_tokens);
  if (o.mask_token()) check_name("the mask token", names.mask_token);
  if (o.position_table() != vision::PositionTable::None)
    check_name("the table of positions", names.positions);
  if (o.norm()) check_name("the norm", names.norm);
  const bool is_path = !names.patches.empty() && names.patches.front() != '.' &&
                       names.patches.back() != '.' && names.patches.find("..") == std::string::npos;
  TORCH_CHECK_VALUE(is_path,
                    "[VisionEmbeddings] the name of the projection must be names with single dots "
                    "between them. Got `",
                    names.patches, "`");
}

}  // namespace

int64_t VisionEmbeddingsOptions::position_prefix() const {
  if (position_rows() == vision::PositionRows::Patches) return 0;
  const int64_t tokens = class_tokens() + (distillation_token() ? 1 : 0);
  const bool registers = position_rows() == vision::PositionRows::AllTokens;
  return tokens + (registers ? register_tokens().value_or(0) : 0);
}

void VisionEmbeddingsOptions::validate() const {
  check_positive("VisionEmbeddings", "d_model", d_model());
  check_positive("VisionEmbeddings", "num_channels", num_channels());
  check_positive("VisionEmbeddings", "patch_height", patch_height());
  check_positive("VisionEmbeddings", "patch_width", patch_width());
  TORCH_CHECK_VALUE(image_height() >= patch_height() && image_width() >= patch_width(),
                    "[VisionEmbeddings] images must have at least one patch of ", patch_height(),
                    "x", patch_width(), " pixels. Got ", image_height(), "x", image_width());
  check_dropout("VisionEmbeddings", dropout());
  TORCH_CHECK_VALUE(mask_ratio() >= 0.0 && mask_ratio() < 1.0,
                    "[VisionEmbeddings] mask_ratio must lie in [0, 1). Got ", mask_ratio());
  TORCH_CHECK_VALUE(initializer_range() > 0.0,
                    "[VisionEmbeddings] initializer_range must be positive. Got ",
                    initializer_range());
  check_tokens(*this);
  check_names(*this);
  check_maps(*this);
  const int64_t patches = (image_height() / patch_height()) * (image_width() / patch_width());
  check_sinusoid(*this, position_prefix() + patches);
}

}  // namespace posenc
