// Exponential frequencies along one axis.

#include <cmath>

#include "sinusoid/presets/recipes.h"

namespace posenc::recipes {
namespace {

// f = exp(i * -(ln b / (n - 1))), halves: the fairseq family
Options shift1(int64_t dim) {
  return Options(dim)
      .index(sinusoid::Index::Half)
      .divisor(sinusoid::Divisor::Pairs)
      .shift(1)
      .layout(sinusoid::Layout::Halves);
}

// f = exp((i * -ln b) / (n - shift)), halves, at real positions: the diffusion timestep family
Options timesteps(int64_t dim, const Reader& p) {
  return Options(dim)
      .frequency(sinusoid::Frequency::ExpDividedLast)
      .index(sinusoid::Index::Half)
      .divisor(sinusoid::Divisor::Pairs)
      .layout(sinusoid::Layout::Halves)
      .odd_dim(sinusoid::OddDim::ZeroColumn)
      .base(p.positive("max_period"))
      .start(p.real("start"))
      .step(p.real("step"));
}

}  // namespace

Options tutorial(int64_t dim, const Reader&) { return Options(dim); }

Options nemo_nmt(int64_t dim, const Reader&) {
  return Options(dim).post(sinusoid::Post::DivideBySqrtDim);
}

Options float_increment(int64_t dim, const Reader&) {
  return Options(dim).frequency(sinusoid::Frequency::ExpInFloat);
}

Options standardized(int64_t dim, const Reader&) {
  return Options(dim).post(sinusoid::Post::Standardize);
}

Options tape(int64_t dim, const Reader&) { return Options(dim).angle_by_length(true); }

Options relative(int64_t dim, const Reader&) {
  return Options(dim).position_range(sinusoid::PositionRange::Relative);
}

Options relative_float_log(int64_t dim, const Reader&) {
  return Options(dim)
      .position_range(sinusoid::PositionRange::Relative)
      .frequency(sinusoid::Frequency::ExpOfFloatLog);
}

Options relative_distance(int64_t dim, const Reader&) {
  return Options(dim).position_range(sinusoid::PositionRange::RelativeDistance);
}

Options fairseq(int64_t dim, const Reader& p) {
  const int64_t padding_idx = p.integer("padding_idx");
  if (padding_idx < -1) p.refuse("padding_idx", "a row, or -1 for none");
  auto options = shift1(dim).odd_dim(sinusoid::OddDim::ZeroColumn);
  if (padding_idx >= 0) options.zero_row(padding_idx);
  return options;
}

Options musicgen(int64_t dim, const Reader&) {
  return shift1(dim).odd_dim(sinusoid::OddDim::ZeroColumn).cos_first(true);
}

Options halves_shift1(int64_t dim, const Reader&) { return shift1(dim); }

Options halves_shift1_zero(int64_t dim, const Reader&) {
  return shift1(dim).odd_dim(sinusoid::OddDim::ZeroColumn);
}

Options whisper(int64_t dim, const Reader& p) {
  return shift1(dim).base(p.positive("max_timescale"));
}

Options timesfm(int64_t dim, const Reader& p) {
  return whisper(dim, p).divisor_at_least_one(true).odd_dim(sinusoid::OddDim::ExtraRow);
}

Options fairseq2(int64_t dim, const Reader& p) {
  const int64_t pad = p.integer("legacy_pad_idx");
  if (pad < -1) p.refuse("legacy_pad_idx", "an index, or -1 for none");
  return shift1(dim)
      .frequency(sinusoid::Frequency::ExpDividedLast)
      .start(static_cast<double>(pad))
      .zero_row(0);
}

Options funasr(int64_t dim, const Reader&) {
  return shift1(dim).frequency(sinusoid::Frequency::ExpInFloat).start(1);
}

Options flax(int64_t dim, const Reader&) {
  return shift1(dim)
      .arithmetic(sinusoid::Arithmetic::Float64)
      .odd_dim(sinusoid::OddDim::ZeroColumn);
}

Options tensor2tensor(int64_t dim, const Reader& p) {
  return shift1(dim)
      .frequency(sinusoid::Frequency::ExpInFloat)
      .divisor_at_least_one(true)
      .odd_dim(sinusoid::OddDim::ZeroColumn)
      .start(static_cast<double>(p.integer("start_index")));
}

Options opennmt_tf(int64_t dim, const Reader&) { return shift1(dim).start(1); }

Options diffusers_timesteps(int64_t dim, const Reader& p) {
  return timesteps(dim, p)
      .shift(p.real("downscale_freq_shift"))
      .angle_scale(p.real("scale"))
      .cos_first(p.flag("flip_sin_to_cos"));
}

Options guided_diffusion(int64_t dim, const Reader& p) { return timesteps(dim, p).cos_first(true); }

Options ddpm(int64_t dim, const Reader& p) {
  return shift1(dim)
      .base(p.positive("theta"))
      .odd_dim(sinusoid::OddDim::Narrow)
      .start(p.real("start"))
      .step(p.real("step"));
}

// The base makes the last frequency that of the interleaved table: 10000 ** -((D - 2) / D).
Options canary(int64_t dim, const Reader&) {
  const double channels = static_cast<double>(dim);
  return shift1(dim)
      .base(std::pow(10000.0, (channels - 2) / channels))
      .post(sinusoid::Post::DivideBySqrtDim);
}

Options whisper_from_one(int64_t dim, const Reader& p) { return whisper(dim, p).start(1); }

Options gemma_audio(int64_t dim, const Reader& p) {
  return shift1(dim)
      .divisor_at_least_one(true)
      .odd_dim(sinusoid::OddDim::Narrow)
      .start(p.real("start"))
      .step(p.real("step"));
}

Options zoedepth(int64_t dim, const Reader& p) {
  return float_increment(dim, p).layout(sinusoid::Layout::Halves).odd_dim(sinusoid::OddDim::Widen);
}

Options scaled_timesteps(int64_t dim, const Reader& p) {
  return shift1(dim)
      .odd_dim(sinusoid::OddDim::Narrow)
      .coordinates({{false, p.real("scale")}})
      .start(p.real("start"))
      .step(p.real("step"));
}

}  // namespace posenc::recipes
