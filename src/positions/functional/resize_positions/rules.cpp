#include "positions/functional/resize_positions/rules.h"

#include <c10/util/Exception.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <vector>

#include "core/named.h"

namespace posenc {
namespace functional {
namespace {

using Filter = ResizeFilter;
using Kept = ResizeKept;
using Sizing = ResizeSizing;

constexpr ResizeRule kResizeRules[] = {
    {.rule = PositionResize::Refuse, .name = "refuse", .kept = Kept::EqualGrid},
    {.rule = PositionResize::Bicubic, .name = "bicubic", .kept = Kept::SquareImage},
    {.rule = PositionResize::BicubicFloat32,
     .name = "bicubic_float32",
     .in_float32 = true,
     .kept = Kept::SquareImage},
    {.rule = PositionResize::BicubicOffset,
     .name = "bicubic_offset",
     .in_float32 = true,
     .sizing = Sizing::Offset,
     .kept = Kept::SquareImage},
    {.rule = PositionResize::BicubicAntialias,
     .name = "bicubic_antialias",
     .antialias = true,
     .in_float32 = true,
     .kept = Kept::SquareImage},
    {.rule = PositionResize::BicubicAntialiasKeepEqual,
     .name = "timm",
     .antialias = true,
     .in_float32 = true,
     .kept = Kept::EqualGrid},
    {.rule = PositionResize::BicubicGrow, .name = "bicubic_grow", .sizing = Sizing::Grow},
    {.rule = PositionResize::Bilinear, .name = "bilinear", .filter = Filter::Bilinear},
    {.rule = PositionResize::BilinearCrop,
     .name = "bilinear_crop",
     .filter = Filter::Bilinear,
     .in_float32 = true,
     .sizing = Sizing::Square},
    {.rule = PositionResize::BilinearAntialias,
     .name = "bilinear_antialias",
     .filter = Filter::Bilinear,
     .antialias = true,
     .in_float32 = true},
    {.rule = PositionResize::Nearest,
     .name = "nearest",
     .filter = Filter::Nearest,
     .kept = Kept::EqualCount},
};

}  // namespace

const ResizeRule& resize_rule(PositionResize rule) {
  return *std::find_if(std::begin(kResizeRules), std::end(kResizeRules),
                       [&](const ResizeRule& row) { return row.rule == rule; });
}

}  // namespace functional

PositionResize position_resize_of(const std::string& name) {
  using functional::kResizeRules;
  const auto* found = detail::find_named(kResizeRules, name);
  if (found == nullptr) {
    std::vector<std::string> names;
    for (const auto& row : kResizeRules) names.emplace_back(row.name);
    TORCH_CHECK_VALUE(false, "[position_resize_of] the rule must be one of ",
                      fmt::format("{}", fmt::join(names, ", ")), ". Got ", name);
  }
  return found->rule;
}

std::string to_string(PositionResize rule) { return functional::resize_rule(rule).name; }

}  // namespace posenc
