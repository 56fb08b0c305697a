#include "positions/sinusoid/presets/parameter.h"

#include <c10/util/Exception.h>

#include <cmath>

#include "base/platform/number.h"
#include "core/check.h"

namespace posenc::recipes {

void Value::refuse(const char* rule) const {
  TORCH_CHECK_VALUE(false, "[preset] `", preset, "`: ", name, " must be ", rule, ". Got ", text);
  std::abort();  // not reached
}

double Value::real() const {
  const auto number = platform::parse_number<double>(text);
  if (!number || !std::isfinite(*number)) refuse("a finite number");
  return *number;
}

int64_t Value::integer() const {
  const double value = real();
  if (value != std::trunc(value) || std::abs(value) > 9007199254740992.0) refuse("an integer");
  return static_cast<int64_t>(value);
}

bool Value::flag() const {
  const int64_t value = integer();
  if (value != 0 && value != 1) refuse("0 or 1");
  return value == 1;
}

int64_t Value::extent() const {
  const int64_t value = integer();
  if (value < 1 || value > kPositionLimit) refuse("an integer in [1, 2^31]");
  return value;
}

double Value::positive() const {
  const double value = real();
  if (value <= 0.0) refuse("positive");
  return value;
}

Parameters operator+(Parameters a, const Parameters& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

Parameters line(const char* start, const char* step, const std::string& of) {
  return {{{"start", start, "first " + of}, [](Options& o, const Value& v) { o.start(v.real()); }},
          {{"step", step, "distance between " + (of == "x" ? of : of + "s")},
           [](Options& o, const Value& v) { o.step(v.real()); }}};
}

Parameters base(const char* name, const char* fallback) {
  return {{{name, fallback, "base"}, [](Options& o, const Value& v) { o.base(v.positive()); }}};
}

Parameters cos_first() {
  return {{{"flip_sin_to_cos", "0", "1: cosines first"},
           [](Options& o, const Value& v) { o.cos_first(v.flag()); }}};
}

}  // namespace posenc::recipes
