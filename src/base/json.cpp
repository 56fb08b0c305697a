#include "base/json.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/text.h"

namespace posenc::base {
namespace {

using nlohmann::json;

constexpr std::size_t kLongest = 100'000'000;  // as for a safetensors header
constexpr int kDeepest = 64;

// What Python writes, and numbers that no program does, by whose text they are known again.
struct Special {
  std::string_view word, number;
  double value;
};
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr Special kSpecials[] = {
    {"NaN", "0.00E-0000000000000001", std::numeric_limits<double>::quiet_NaN()},
    {"Infinity", "0.00E-0000000000000002", kInfinity},
    {"-Infinity", "0.00E-0000000000000003", -kInfinity}};

class Events : public nlohmann::json_sax<json> {
 public:
  Events(const std::string& what, JsonHandler& handler) : what_(what), handler_(handler) {}

  bool start_object(std::size_t) override { return open(&JsonHandler::start_object); }
  bool start_array(std::size_t) override { return open(&JsonHandler::start_array); }
  bool end_object() override { return close(&JsonHandler::end_object); }
  bool end_array() override { return close(&JsonHandler::end_array); }

  bool key(string_t& name) override {
    if (!skipping_ && !handler_.key(name)) {
      skipping_ = true;
      skipped_at_ = depth_;
    }
    return true;
  }

  bool string(string_t& text) override {
    return scalar([&] { handler_.string(text); });
  }
  bool number_unsigned(number_unsigned_t value) override {
    return scalar([&] { handler_.number(value); });
  }
  bool number_integer(number_integer_t value) override {
    return scalar([&] { handler_.negative(value); });
  }
  bool number_float(number_float_t value, const string_t& text) override {
    return scalar([&] { handler_.real(special_number(text).value_or(value), text); });
  }
  bool boolean(bool value) override {
    return scalar([&] { handler_.boolean(value); });
  }
  bool null() override {
    return scalar([&] { handler_.null(); });
  }
  bool binary(binary_t&) override { return false; }  // JSON has none

  bool parse_error(std::size_t position, const std::string&, const json::exception&) override {
    fail(position);
  }

  [[noreturn]] void fail(std::size_t position) const {
    throw JsonError(JsonError::Kind::Corrupt, "must have JSON in UTF-8 as " + what_ +
                                                  ". Got an error at byte " +
                                                  std::to_string(position) + " of it");
  }

 private:
  template <typename Report>
  bool scalar(Report&& report) {
    if (!skipping_) report();
    end_of_value();
    return true;
  }

  bool open(void (JsonHandler::*event)()) {
    if (++depth_ > kDeepest) {
      throw JsonError(JsonError::Kind::LimitExceeded,
                      "must nest " + what_ + " no deeper than " + std::to_string(kDeepest));
    }
    if (!skipping_) (handler_.*event)();
    return true;
  }

  bool close(void (JsonHandler::*event)()) {
    --depth_;
    if (!skipping_) (handler_.*event)();
    end_of_value();
    return true;
  }

  // Skipping ends with the value of the unwanted key.
  void end_of_value() {
    if (depth_ == skipped_at_) skipping_ = false;
  }

  const std::string& what_;
  JsonHandler& handler_;
  int depth_ = 0;
  int skipped_at_ = -1;
  bool skipping_ = false;
};

}  // namespace

void JsonHandler::real(double, const std::string& text) { other(io::in_quotes(text)); }

std::optional<double> special_number(std::string_view number) {
  for (const Special& special : kSpecials)
    if (number == special.number) return special.value;
  return std::nullopt;
}

std::string with_special_numbers(std::string_view text) {
  std::string result;
  bool is_in_string = false;
  for (std::size_t at = 0; at < text.size();) {
    if (is_in_string && text[at] == '\\') {
      result += text.substr(at, 2);
      at += 2;
      continue;
    }
    if (text[at] == '"') is_in_string = !is_in_string;
    const auto* const found =
        std::find_if(std::begin(kSpecials), std::end(kSpecials), [&](const Special& special) {
          return !is_in_string && text.substr(at).starts_with(special.word);
        });
    const bool is_special = found != std::end(kSpecials);
    result += is_special ? std::string_view(found->number) : text.substr(at, 1);
    at += is_special ? found->word.size() : 1;
  }
  return result;
}

void parse_json(std::string_view text, const std::string& what, JsonHandler& handler,
                JsonNumbers numbers) {
  if (numbers == JsonNumbers::OfPython && (text.find("NaN") != std::string_view::npos ||
                                           text.find("Infinity") != std::string_view::npos)) {
    return parse_json(with_special_numbers(text), what, handler);
  }
  if (text.size() > kLongest) {
    throw JsonError(JsonError::Kind::LimitExceeded,
                    "must have at most " + std::to_string(kLongest) + " bytes as " + what +
                        ". Got " + std::to_string(text.size()));
  }
  Events events(what, handler);
  // nlohmann's parser would skip a byte order mark, and take a NUL for the end of the text.
  const std::size_t nul = text.find('\0');
  if (text.substr(0, 3) == "\xef\xbb\xbf") events.fail(1);
  if (nul != std::string_view::npos) events.fail(nul + 1);
  json::sax_parse(text.begin(), text.end(), &events);
}

}  // namespace posenc::base
