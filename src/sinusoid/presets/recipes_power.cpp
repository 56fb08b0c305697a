// Frequencies as powers, along one axis.

#include "sinusoid/presets/recipes.h"

namespace posenc::recipes {
namespace {

// 1 / b ** (i / D), i = 0, 2, 4 ...
Options reciprocal(int64_t dim) {
  return Options(dim).frequency(sinusoid::Frequency::PowerReciprocal);
}

// p / b ** (2 (j / 2) / D) for every channel j, in float64: the family of Marian and XLM in
// Hugging Face's transformers
Options all_channels(int64_t dim) {
  return Options(dim)
      .frequency(sinusoid::Frequency::Power)
      .index(sinusoid::Index::Paired)
      .phase(sinusoid::Phase::Quotient)
      .arithmetic(sinusoid::Arithmetic::Float64)
      .odd_dim(sinusoid::OddDim::ExtraSin);
}

// 1 / b ** (i / n), i = 0 ... n - 1, halves
Options half_index(int64_t dim) {
  return reciprocal(dim)
      .index(sinusoid::Index::Half)
      .divisor(sinusoid::Divisor::Pairs)
      .layout(sinusoid::Layout::Halves);
}

}  // namespace

Options notebook_001(int64_t dim, const Reader&) {
  return Options(dim).frequency(sinusoid::Frequency::Power).phase(sinusoid::Phase::Quotient);
}

Options notebook_002(int64_t dim, const Reader& p) {
  return notebook_001(dim, p).power_shape(sinusoid::PowerShape::Grid);
}

Options notebook_004(int64_t dim, const Reader&) { return reciprocal(dim); }

Options nemo_tts(int64_t dim, const Reader&) {
  return reciprocal(dim).layout(sinusoid::Layout::Halves).odd_dim(sinusoid::OddDim::Widen);
}

Options transformer_xl(int64_t dim, const Reader& p) {
  return nemo_tts(dim, p).position_range(sinusoid::PositionRange::Down);
}

Options xlnet(int64_t dim, const Reader& p) {
  const bool both = p.text("attn_type") == "bi";
  if (!both && p.text("attn_type") != "uni") p.refuse("attn_type", "bi or uni");
  return nemo_tts(dim, p).position_range(both ? sinusoid::PositionRange::RelativeEven
                                              : sinusoid::PositionRange::DownFromLength);
}

Options marian(int64_t dim, const Reader&) {
  return all_channels(dim).layout(sinusoid::Layout::Halves);
}

Options xlm(int64_t dim, const Reader&) { return all_channels(dim); }

Options cct(int64_t dim, const Reader&) {
  return all_channels(dim).arithmetic(sinusoid::Arithmetic::Float64Angle);
}

Options unpaired(int64_t dim, const Reader&) {
  return all_channels(dim).index(sinusoid::Index::Doubled).odd_dim(sinusoid::OddDim::Error);
}

Options diffusers_1d(int64_t dim, const Reader& p) {
  return half_index(dim)
      .divisor(sinusoid::Divisor::HalfChannels)
      .arithmetic(sinusoid::Arithmetic::Float64)
      .cos_first(p.flag("flip_sin_to_cos"))
      .start(p.real("start"))
      .step(p.real("step"));
}

Options ctrl(int64_t dim, const Reader&) {
  return reciprocal(dim)
      .index(sinusoid::Index::Paired)
      .layout(sinusoid::Layout::Halves)
      .odd_dim(sinusoid::OddDim::ExtraSin);
}

Options x_transformers(int64_t dim, const Reader& p) {
  return half_index(dim)
      .frequency(sinusoid::Frequency::PowerNegative)
      .base(p.positive("theta"))
      .post(sinusoid::Post::MultiplyByRsqrtDim);
}

Options keras_sine(int64_t dim, const Reader& p) {
  return Options(dim)
      .frequency(sinusoid::Frequency::PowerInverseBase)
      .index(sinusoid::Index::Paired)
      .base(p.positive("max_wavelength"))
      .start(static_cast<double>(p.integer("start_index")))
      .odd_dim(sinusoid::OddDim::ExtraSin);
}

Options simple_vit_1d(int64_t dim, const Reader& p) {
  return half_index(dim).shift(1).base(p.positive("temperature"));
}

Options sam2_1d(int64_t dim, const Reader& p) {
  return Options(dim)
      .frequency(sinusoid::Frequency::Power)
      .phase(sinusoid::Phase::Quotient)
      .index(sinusoid::Index::PairedHalf)
      .divisor(sinusoid::Divisor::Pairs)
      .layout(sinusoid::Layout::Halves)
      .odd_dim(sinusoid::OddDim::Narrow)
      .start(p.real("start"))
      .step(p.real("step"));
}

Options positional_encodings_1d(int64_t dim, const Reader&) {
  return reciprocal(dim)
      .axis_channels(sinusoid::AxisChannels::CeilEven)
      .odd_dim(sinusoid::OddDim::Truncate);
}

Options positional_encodings_1d_halves(int64_t dim, const Reader& p) {
  return positional_encodings_1d(dim, p).layout(sinusoid::Layout::Halves);
}

Options parakeet(int64_t dim, const Reader&) {
  return reciprocal(dim)
      .odd_dim(sinusoid::OddDim::Widen)
      .position_range(sinusoid::PositionRange::Relative);
}

Options kimi(int64_t dim, const Reader&) {
  return reciprocal(dim).layout(sinusoid::Layout::Halves).cls_row(true);
}

Options bros(int64_t dim, const Reader& p) {
  return reciprocal(dim)
      .layout(sinusoid::Layout::Halves)
      .start(p.real("start"))
      .step(p.real("step"));
}

Options duration(int64_t dim, const Reader& p) {
  return half_index(dim)
      .shift(1)
      .cos_first(true)
      .base(p.positive("max_period"))
      .start(p.real("start"))
      .step(p.real("step"));
}

// The exponent is divided by the number of pairs, so that the frequencies fall to 1 / b ** 2.
Options box_relation(int64_t dim, const Reader& p) {
  return reciprocal(dim)
      .divisor(sinusoid::Divisor::Pairs)
      .layout(sinusoid::Layout::Halves)
      .base(p.positive("theta"))
      .coordinates({{false, p.real("scale")}})
      .start(p.real("start"))
      .step(p.real("step"));
}

Options pi0(int64_t dim, const Reader& p) {
  const double shortest = p.positive("min_period");
  return Options(dim)
      .frequency(sinusoid::Frequency::Periods)
      .min_period(shortest)
      .base(p.positive("max_period") / shortest)
      .layout(sinusoid::Layout::Halves)
      .odd_dim(sinusoid::OddDim::Narrow)
      .start(p.real("start"))
      .step(p.real("step"));
}

}  // namespace posenc::recipes
