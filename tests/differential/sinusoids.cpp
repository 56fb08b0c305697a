// Tables and single rows of any SinusoidOptions.

#include "posenc/positions/sinusoid/table.h"

#include <torch/types.h>

#include "differential/ops.h"

namespace posenc::differential {
namespace {

template <typename Enum>
Enum number(const Json& options, const char* name) {
  return static_cast<Enum>(options.at(name).get<int>());
}

SinusoidOptions sinusoid_of(const Json& o) {
  SinusoidOptions options(o.at("dim").get<int64_t>());
  options.frequency(number<sinusoid::Frequency>(o, "frequency"))
      .index(number<sinusoid::Index>(o, "index"));
  options.divisor(number<sinusoid::Divisor>(o, "divisor")).shift(o.at("shift"));
  options.divisor_at_least_one(o.at("divisor_at_least_one")).base(o.at("base"));
  options.max_frequency(o.at("max_frequency")).phase(number<sinusoid::Phase>(o, "phase"));
  options.power_shape(number<sinusoid::PowerShape>(o, "power_shape"));
  options.arithmetic(number<sinusoid::Arithmetic>(o, "arithmetic"));
  options.precision(number<Precision>(o, "precision"));
  options.angle_scale(o.at("angle_scale")).angle_by_length(o.at("angle_by_length"));
  options.layout(number<sinusoid::Layout>(o, "layout")).cos_first(o.at("cos_first"));
  options.odd_dim(number<sinusoid::OddDim>(o, "odd_dim")).raw_first(o.at("raw_first"));
  options.position_range(number<sinusoid::PositionRange>(o, "rows"))
      .start(o.at("start"))
      .step(o.at("step"));
  if (!o.at("zero_row").is_null()) options.zero_row(o.at("zero_row").get<int64_t>());
  options.cls_row(o.at("cls_row")).grid(o.at("grid").get<std::vector<int64_t>>());
  options.channel_axes(o.at("channel_axes").get<std::vector<int64_t>>());
  options.axis_depth(number<sinusoid::AxisDepth>(o, "axis_depth"));
  options.axis_values(number<sinusoid::AxisValues>(o, "axis_values"));
  options.axis_channels(number<sinusoid::AxisChannels>(o, "axis_channels"));
  options.base_size(o.at("base_size")).interpolation_scale(o.at("interpolation_scale"));
  for (const auto& one : o.at("coordinates")) options.coordinates().push_back({one[0], one[1]});
  return options.post(number<sinusoid::Post>(o, "post"));
}

StateDict sinusoid(const Json& options, const StateDict& tensors) {
  const auto how = sinusoid_of(options);
  const int64_t length = options.at("length");
  StateDict results;
  results.insert("table", sinusoid_table(how, length));
  const auto sizes = results["table"].sizes();
  TORCH_CHECK(sizes[0] == how.row_count(length) && sizes[1] == how.channels(),
              "row_count() and channels() are those of the table. Got ", how.row_count(length),
              ", ", how.channels(), " and ", sizes);
  if (tensors.contains("positions"))
    results.insert("rows", sinusoid_rows(how, tensors["positions"]));
  return results;
}

}  // namespace

Ops sinusoid_ops() { return {{"sinusoid", sinusoid}}; }

}  // namespace posenc::differential
