#include "models/positions/rope_parameters.h"

#include <c10/util/StringUtil.h>

#include <cstdint>
#include <numeric>
#include <sstream>

#include "positions/rotary/scaling.h"

namespace posenc {
namespace {

struct PackageParam {
  const char* name;
  const char* presets;  // with spaces between them
  void (*apply)(const Settings& given, RotaryOptions& options);
};

void axes_dim(const Settings& given, RotaryOptions& options) {
  const auto dims = *given.integers_if("axes_dim");
  if (std::accumulate(dims.begin(), dims.end(), int64_t{0}) != options.dim()) {
    given.refuse("axes_dim", c10::str("must be numbers that sum to head_dim, ", options.dim()));
  }
  options.axis_dims(dims);
}

// Cosmos raises the base of each axis as for a longer context.
void rope_scale(const Settings& given, RotaryOptions& options) {
  const auto scales = *given.reals_if("rope_scale");
  if (scales.size() != 3) given.refuse("rope_scale", "must be a number for each axis");
  options.axis_bases(ntk_bases(options, scales));
}

// Kandinsky divides the angles of each axis.
void scale_factor(const Settings& given, RotaryOptions& options) {
  const auto divisors = *given.reals_if("scale_factor");
  if (static_cast<int64_t>(divisors.size()) != options.plane_count())
    given.refuse("scale_factor", "must be a number for each axis");
  options.axis_divisors(divisors);
}

// A number of axes other than three, all of the same width.
void num_axes(const Settings& given, RotaryOptions& options) {
  const int64_t axes = *given.integer_if("num_axes");
  if (axes < 1 || 2 * axes > options.dim())
    given.refuse("num_axes", c10::str("must lie in [1, head_dim / 2], head_dim ", options.dim()));
  options.axes(axes);
  options.axis_dims(
      std::vector<int64_t>(static_cast<size_t>(axes), 2 * (options.dim() / (2 * axes))));
}

void num_attention_heads(const Settings& given, RotaryOptions& options) {
  options.joined_heads(*given.integer_if("num_attention_heads"));
}

void rotate_half(const Settings& given, RotaryOptions& options) {
  const bool halves = *given.flag_if("rotate_half");
  options.pairing(halves ? rotary::Pairing::Halves : rotary::Pairing::Adjacent);
  options.cos_layout(halves ? rotary::CosLayout::Halves : rotary::CosLayout::Pairs);
}

void in_pixels(const Settings& given, RotaryOptions& options) {
  if (!*given.flag_if("in_pixels")) return;
  const bool linear = given.flag_if("linear_bands").value_or(false);
  options.frequency(linear ? rotary::Frequency::PixelBands : rotary::Frequency::LogPixelBands);
  options.base(given.real_if("max_res").value_or(224.0));
}

void with_in_pixels(const Settings&, RotaryOptions&) {}

void interpolation_factor(const Settings& given, RotaryOptions& options) {
  options.angle_divisor(*given.real_if("interpolation_factor"));
}

void base_rescale_factor(const Settings& given, RotaryOptions& options) {
  options.scaling(rotary::NtkAlpha{*given.real_if("base_rescale_factor")});
}

void scale_base(const Settings& given, RotaryOptions& options) {
  options.xpos_scale_base(*given.real_if("scale_base"));
}

constexpr PackageParam kParams[] = {
    {"axes_dim",
     "flux hunyuan_video lumina2 z_image qwen_image hidream_image kandinsky5 kandinsky6 "
     "ernie_image",
     axes_dim},
    {"num_axes", "ltx2 ltx2_split hidream_image kandinsky5 kandinsky6", num_axes},
    {"num_attention_heads", "ltx2_split", num_attention_heads},
    {"scale_factor", "kandinsky5 kandinsky6", scale_factor},
    {"rope_scale", "cosmos", rope_scale},
    {"rotate_half", "timm_cat timm_rope timm_dinov3", rotate_half},
    {"in_pixels", "timm_cat timm_rope", in_pixels},
    {"max_res", "timm_cat timm_rope", with_in_pixels},
    {"linear_bands", "timm_cat timm_rope", with_in_pixels},
    {"interpolation_factor", "x_transformers xpos", interpolation_factor},
    {"base_rescale_factor", "x_transformers xpos", base_rescale_factor},
    {"scale_base", "xpos", scale_base},
};

bool takes(const PackageParam& param, std::string_view preset) {
  std::istringstream words(param.presets);
  std::string word;
  while (words >> word) {
    if (word == preset) return true;
  }
  return false;
}

}  // namespace

std::vector<std::string> package_parameters(std::string_view preset) {
  std::vector<std::string> names;
  for (const PackageParam& param : kParams) {
    if (takes(param, preset)) names.emplace_back(param.name);
  }
  return names;
}

void apply_package_parameters(std::string_view preset, const Settings& given,
                              RotaryOptions& options) {
  for (const PackageParam& param : kParams) {
    if (takes(param, preset) && given.has(param.name)) param.apply(given, options);
  }
}

}  // namespace posenc
