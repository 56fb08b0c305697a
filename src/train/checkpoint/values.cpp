#include "train/checkpoint/values.h"

#include <array>
#include <charconv>
#include <system_error>

#include "base/platform/number.h"
#include "base/text.h"
#include "posenc/weights/error.h"

namespace posenc::io {
namespace {

const std::string& text_of(const Values& values, const std::string& key) {
  const auto found = values.find(key);
  if (found != values.end()) return found->second;
  throw WeightsError(WeightsErrorCode::MissingKeys, "must have the metadata " + in_quotes(key),
                     "only files of save_checkpoint() have it");
}

template <typename Number>
std::string shortest(Number value) {
  std::array<char, 64> buffer{};
  const auto result = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value);
  return {buffer.data(), result.ptr};
}

template <typename Number>
void parse(const Values& values, const std::string& key, Number& value) {
  const std::string& text = text_of(values, key);
  const auto parsed = platform::parse_number<Number>(text);
  if (parsed) {
    value = *parsed;
    return;
  }
  throw WeightsError(WeightsErrorCode::Corrupt, "must have a number as the metadata " +
                                                    in_quotes(key) + ". Got " + in_quotes(text));
}

}  // namespace

std::string to_text(double value) { return shortest(value); }
std::string to_text(int64_t value) { return shortest(value); }
std::string to_text(bool value) { return value ? "1" : "0"; }

void read_value(const Values& values, const std::string& key, double& value) {
  parse(values, key, value);
}

void read_value(const Values& values, const std::string& key, bool& value) {
  value = read_count(values, key, 1) != 0;
}

int64_t read_count(const Values& values, const std::string& key, int64_t most) {
  int64_t count = 0;
  parse(values, key, count);
  if (count >= 0 && count <= most) return count;
  throw WeightsError(WeightsErrorCode::Corrupt,
                     "must have a number from 0 to " + std::to_string(most) + " as the metadata " +
                         in_quotes(key) + ". Got " + in_quotes(text_of(values, key)));
}

}  // namespace posenc::io
