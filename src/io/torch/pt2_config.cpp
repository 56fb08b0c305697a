#include "io/torch/pt2_config.h"

#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "io/base/keyed_hash.h"
#include "io/base/quote.h"
#include "io/base/tensor_list.h"
#include "posenc/io/error.h"

namespace posenc::io {
namespace {

using nlohmann::json;

constexpr std::size_t kDeepestConfig = 32;

WeightsError damaged(const std::string& rule) {
  return {WeightsErrorCode::Corrupt, "has a damaged list of weights: " + rule};
}

// Receives the parser's events: its tree would take many times the size of the text, silently keep
// the last of two equal keys, and be as deep as the file likes.
class ConfigHandler : public nlohmann::json_sax<json> {
 public:
  ConfigHandler(std::vector<Pt2Weight>& weights, Budget& budget)
      : weights_(weights), budget_(budget) {}

  bool has_config() const { return has_config_; }

  bool start_object(std::size_t) override {
    has_config_ = has_config_ || (levels_.size() == 1 && at(0, "config"));
    if (is_weight()) {
      budget_.spend(2 * sizeof(Pt2Weight));
      weights_.emplace_back();
      weights_.back().name = levels_.back().key;
    }
    open(true);
    return true;
  }
  bool start_array(std::size_t) override {
    if (is_weight() || (levels_.size() == 1 && at(0, "config"))) return other();
    open(false);
    return true;
  }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }

  bool key(string_t& name) override {
    Level& level = levels_.back();
    budget_.spend(64 + 2 * name.size());
    if (!level.keys.insert(name).second) throw damaged("key " + in_quotes(name) + " stands twice");
    level.key = std::move(name);
    return true;
  }

  bool string(string_t& value) override {
    if (is_field("path_name")) {
      weights_.back().record = std::move(value);
      return true;
    }
    return other();
  }
  bool boolean(bool value) override {
    if (is_field("is_param")) {
      weights_.back().is_parameter = value;
    } else if (is_field("use_pickle")) {
      weights_.back().pickled = value;
    } else if (is_meta("requires_grad")) {
      weights_.back().requires_grad = value;
    } else {
      return other();
    }
    return true;
  }
  bool number_unsigned(number_unsigned_t value) override {
    if (value > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
      return number_float(0, std::to_string(value));
    }
    return number_integer(static_cast<number_integer_t>(value));
  }
  bool number_integer(number_integer_t value) override {
    if (is_meta("dtype")) {
      weights_.back().dtype = value;
    } else if (is_meta("layout")) {
      weights_.back().layout = value;
    } else if (is_symbolic("storage_offset", 5)) {
      weights_.back().offset = value;
    } else if (is_symbolic("sizes", 6)) {
      add(weights_.back().sizes, value);
    } else if (is_symbolic("strides", 6)) {
      add(weights_.back().strides, value);
    } else {
      return other();
    }
    return true;
  }
  bool number_float(number_float_t, const string_t& text) override {
    if (is_meta("dtype") || is_meta("layout") || in_shape()) {
      throw damaged("weight " + in_quotes(weights_.back().name) + " has the number " +
                    in_quotes(text));
    }
    return other();
  }
  bool null() override { return other(); }
  bool binary(binary_t&) override { return other(); }

  bool parse_error(std::size_t position, const std::string&, const json::exception&) override {
    throw damaged("it must be JSON in UTF-8. Got an error at byte " + std::to_string(position));
  }

 private:
  // An open object with the key of the next value, or an open array.
  struct Level {
    bool is_object;
    std::string key;
    NameSet keys;
  };

  void open(bool is_object) {
    if (levels_.empty() && !is_object) throw damaged("it must be an object");
    if (levels_.size() == kDeepestConfig) {
      throw WeightsError(WeightsErrorCode::LimitExceeded,
                         "has a list of weights that is nested too deep");
    }
    levels_.push_back({is_object, "", {}});
  }

  bool close() {
    levels_.pop_back();
    return true;
  }

  // A value that the format allows but that does not matter. The config and each weight must be
  // objects, however: fields are attributed to the last weight.
  bool other() const {
    if (levels_.empty() || is_weight()) throw damaged("a weight must be an object");
    if (levels_.size() == 1 && at(0, "config")) throw damaged("its config must be an object");
    if (in_shape()) {
      throw WeightsError(WeightsErrorCode::Unsupported, "has a shape that is not a number")
          .in_tensor(weights_.back().name);
    }
    return true;
  }

  bool at(std::size_t level, std::string_view key) const {
    return level < levels_.size() && levels_[level].is_object && levels_[level].key == key;
  }
  // What the next value is: a weight, a field of it, a field of its tensor_meta, an integer in
  // that.
  bool is_weight() const { return levels_.size() == 2 && at(0, "config"); }
  bool is_field(std::string_view name) const {
    return levels_.size() == 3 && at(0, "config") && at(2, name);
  }
  bool is_meta(std::string_view name) const {
    return levels_.size() == 4 && at(0, "config") && at(2, "tensor_meta") && at(3, name);
  }
  bool is_symbolic(std::string_view name, std::size_t depth) const {
    return levels_.size() == depth && at(0, "config") && at(2, "tensor_meta") && at(3, name) &&
           at(depth - 1, "as_int");
  }
  bool in_shape() const {
    return levels_.size() > 4 && at(0, "config") && at(2, "tensor_meta") &&
           (at(3, "sizes") || at(3, "strides") || at(3, "storage_offset"));
  }

  static void add(std::vector<int64_t>& numbers, int64_t value) {
    if (numbers.size() == kMostDimensions) throw damaged("a weight has more than 64 dimensions");
    numbers.push_back(value);
  }

  std::vector<Pt2Weight>& weights_;
  Budget& budget_;
  std::vector<Level> levels_;
  bool has_config_ = false;
};

}  // namespace

std::vector<Pt2Weight> parse_pt2_config(std::string_view text, Budget& budget) {
  // The parser would skip a byte order mark, and take a NUL for the end of the text.
  if (text.starts_with("\xef\xbb\xbf") || text.find('\0') != std::string_view::npos) {
    throw damaged("it must be JSON in UTF-8");
  }
  std::vector<Pt2Weight> weights;
  ConfigHandler handler(weights, budget);
  json::sax_parse(text.begin(), text.end(), &handler);
  if (!handler.has_config()) throw damaged("it lacks its object config");
  return weights;
}

}  // namespace posenc::io
