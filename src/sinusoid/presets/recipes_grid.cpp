// Grids of two and three axes, and points.

#include <numbers>

#include "sinusoid/presets/recipes.h"

namespace posenc::recipes {
namespace {

Options of_height_width(Options options, const Reader& p) {
  return options.grid({p.extent("height"), p.extent("width")});
}

// float64, 1 / b ** (i / (C / 2)), one block of [sin, cos] per axis, the WIDTH first: as in MAE
Options mae_axes(int64_t dim) {
  return Options(dim)
      .frequency(sinusoid::Frequency::PowerReciprocal)
      .index(sinusoid::Index::Half)
      .divisor(sinusoid::Divisor::HalfChannels)
      .arithmetic(sinusoid::Arithmetic::Float64)
      .layout(sinusoid::Layout::Halves)
      .channel_axes({1, 0});
}

// v / b ** (2 (j / 2) / C), one interleaved block per axis: as in DETR
Options detr_axes(int64_t dim) {
  return Options(dim)
      .frequency(sinusoid::Frequency::Power)
      .index(sinusoid::Index::Paired)
      .phase(sinusoid::Phase::Quotient);
}

// 1 / b ** (i / n) in float32, one block of [sin, cos] per axis
Options reciprocal_axes(int64_t dim) {
  return Options(dim)
      .frequency(sinusoid::Frequency::PowerReciprocal)
      .index(sinusoid::Index::Half)
      .divisor(sinusoid::Divisor::Pairs)
      .layout(sinusoid::Layout::Halves);
}

Options interleaved_axes(int64_t dim) {
  return Options(dim)
      .frequency(sinusoid::Frequency::PowerReciprocal)
      .axis_channels(sinusoid::AxisChannels::CeilEven)
      .odd_dim(sinusoid::OddDim::Truncate);
}

}  // namespace

Options mae(int64_t dim, const Reader& p) {
  const int64_t side = p.extent("height");
  return mae_axes(dim).grid({side, side}).cls_row(p.flag("cls_token"));
}

Options vit_mae(int64_t dim, const Reader& p) {
  const int64_t side = p.extent("height");
  return mae_axes(dim).grid({side, side}).cls_row(true);
}

Options aimv2(int64_t dim, const Reader& p) { return of_height_width(mae_axes(dim), p); }

Options diffusers_2d(int64_t dim, const Reader& p) {
  return of_height_width(mae_axes(dim), p)
      .axis_values(sinusoid::AxisValues::Scaled)
      .base_size(p.positive("base_size"))
      .interpolation_scale(p.positive("interpolation_scale"));
}

Options detr(int64_t dim, const Reader& p) {
  return of_height_width(detr_axes(dim), p)
      .axis_values(p.flag("normalize") ? sinusoid::AxisValues::Normalized
                                       : sinusoid::AxisValues::OneBased);
}

Options deformable_detr(int64_t dim, const Reader& p) {
  return of_height_width(detr_axes(dim), p).axis_values(sinusoid::AxisValues::Centered);
}

Options dab_detr(int64_t dim, const Reader& p) {
  return of_height_width(detr_axes(dim), p)
      .frequency(sinusoid::Frequency::PowerOfProduct)
      .index(sinusoid::Index::PairNumber)
      .base(p.positive("temperature"))
      .axis_values(sinusoid::AxisValues::Normalized);
}

Options grounding_dino(int64_t dim, const Reader& p) {
  return of_height_width(detr_axes(dim), p)
      .base(p.positive("temperature"))
      .axis_values(sinusoid::AxisValues::Normalized);
}

Options timm(int64_t dim, const Reader& p) {
  const bool reverse = p.flag("reverse_coord");
  const int64_t height = p.extent("height"), width = p.extent("width");
  return reciprocal_axes(dim)
      .base(p.positive("temperature"))
      .grid(reverse ? std::vector<int64_t>{width, height} : std::vector<int64_t>{height, width})
      .axis_depth(p.flag("interleave_sin_cos") ? sinusoid::AxisDepth::Outer
                                               : sinusoid::AxisDepth::Middle);
}

Options rt_detr(int64_t dim, const Reader& p) {
  return of_height_width(reciprocal_axes(dim), p)
      .base(p.positive("temperature"))
      .arithmetic(sinusoid::Arithmetic::Float64);
}

Options rt_detr_v4(int64_t dim, const Reader& p) {
  return reciprocal_axes(dim)
      .base(p.positive("temperature"))
      .grid({p.extent("width"), p.extent("height")});
}

Options moco_v3(int64_t dim, const Reader& p) {
  return reciprocal_axes(dim).grid({p.extent("width"), p.extent("height")}).cls_row(true);
}

Options monai(int64_t dim, const Reader& p) {
  return of_height_width(reciprocal_axes(dim), p).channel_axes({1, 0});
}

Options simple_vit_2d(int64_t dim, const Reader& p) {
  return of_height_width(reciprocal_axes(dim), p)
      .base(p.positive("temperature"))
      .shift(1)
      .channel_axes({1, 0});
}

Options loftr(int64_t dim, const Reader& p) {
  return of_height_width(Options(dim), p)
      .frequency(p.flag("temp_bug_fix") ? sinusoid::Frequency::Exp
                                        : sinusoid::Frequency::ExpFloored)
      .axis_values(sinusoid::AxisValues::OneBased)
      .axis_depth(sinusoid::AxisDepth::Middle)
      .channel_axes({1, 0});
}

Options positional_encodings_2d(int64_t dim, const Reader& p) {
  return of_height_width(interleaved_axes(dim), p);
}

Options positional_encodings_3d(int64_t dim, const Reader& p) {
  return interleaved_axes(dim).grid({p.extent("depth"), p.extent("height"), p.extent("width")});
}

Options diffusers_3d(int64_t dim, const Reader& p) {
  return mae_axes(dim)
      .grid({p.extent("depth"), p.extent("height"), p.extent("width")})
      .channel_axes({0, 2, 1})
      .axis_channels(sinusoid::AxisChannels::QuarterRest);
}

Options simple_vit_3d(int64_t dim, const Reader& p) {
  return reciprocal_axes(dim)
      .shift(1)
      .grid({p.extent("depth"), p.extent("height"), p.extent("width")})
      .channel_axes({2, 1, 0})
      .axis_channels(sinusoid::AxisChannels::FloorEven)
      .odd_dim(sinusoid::OddDim::ZeroColumn);
}

Options conditional_detr(int64_t dim, const Reader& p) {
  return detr_axes(dim)
      .coordinates({{true, 2 * std::numbers::pi}, {false, 2 * std::numbers::pi}})
      .start(p.real("start"))
      .step(p.real("step"));
}

Options nerf(int64_t dim, const Reader& p) {
  if (dim != 3 + 6 * p.extent("multires")) p.refuse("multires", "(dim - 3) / 6");
  return Options(dim)
      .frequency(sinusoid::Frequency::PowersOfTwo)
      .axis_depth(sinusoid::AxisDepth::Inner)
      .raw_first(true)
      .coordinates({{false, 1.0}, {false, 0.5}, {false, -1.0}})
      .start(p.real("start"))
      .step(p.real("step"));
}

Options perceiver(int64_t dim, const Reader& p) {
  if (dim != 1 + 2 * p.extent("num_bands")) p.refuse("num_bands", "(dim - 1) / 2");
  return Options(dim)
      .frequency(sinusoid::Frequency::Linear)
      .max_frequency(p.positive("max_resolution") / 2)
      .angle_scale(std::numbers::pi)
      .layout(sinusoid::Layout::Halves)
      .raw_first(true)
      .start(p.real("start"))
      .step(p.real("step"));
}

}  // namespace posenc::recipes
