#include "weights/torch/pt2_config.h"

#include <limits>
#include <string>
#include <utility>

#include "base/text.h"
#include "posenc/weights/error.h"
#include "weights/common/json.h"
#include "weights/common/keyed_hash.h"
#include "weights/common/tensor_list.h"

namespace posenc::io {
namespace {

WeightsError damaged(const std::string& rule) {
  return {WeightsErrorCode::Corrupt, "has a damaged list of weights: " + rule};
}

class ConfigHandler : public JsonHandler {
 public:
  ConfigHandler(std::vector<Pt2Weight>& weights, Budget& budget)
      : weights_(weights), budget_(budget) {}

  bool has_config() const { return has_config_; }

  void start_object() override {
    has_config_ = has_config_ || (levels_.size() == 1 && at(0, "config"));
    if (is_weight()) {
      budget_.spend(2 * sizeof(Pt2Weight));
      weights_.emplace_back();
      weights_.back().name = levels_.back().key;
    }
    open(true);
  }
  void start_array() override {
    if (is_weight() || (levels_.size() == 1 && at(0, "config"))) refuse_other();
    open(false);
  }
  void end_object() override { levels_.pop_back(); }
  void end_array() override { levels_.pop_back(); }

  bool key(std::string& name) override {
    Level& level = levels_.back();
    budget_.spend(64 + 2 * name.size());
    if (!level.keys.insert(name).second) throw damaged("key " + in_quotes(name) + " occurs twice");
    level.key = std::move(name);
    return true;
  }

  void string(std::string& value) override {
    if (!is_field("path_name")) return refuse_other();
    weights_.back().record = std::move(value);
  }
  void boolean(bool value) override {
    if (is_field("is_param")) {
      weights_.back().is_parameter = value;
    } else if (is_field("use_pickle")) {
      weights_.back().pickled = value;
    } else if (is_meta("requires_grad")) {
      weights_.back().requires_grad = value;
    } else {
      refuse_other();
    }
  }
  void number(uint64_t value) override {
    if (value > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
      return real(0, std::to_string(value));
    }
    negative(static_cast<int64_t>(value));
  }
  void negative(int64_t value) override {
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
      refuse_other();
    }
  }
  void real(double, const std::string& text) override {
    if (is_meta("dtype") || is_meta("layout") || in_shape()) {
      throw damaged("weight " + in_quotes(weights_.back().name) + " has the number " +
                    in_quotes(text));
    }
    refuse_other();
  }
  void other(const std::string&) override { refuse_other(); }

 private:
  // An open object with the key of the next value, or an open array.
  struct Level {
    bool is_object;
    std::string key;
    NameSet keys;
  };

  void open(bool is_object) {
    if (levels_.empty() && !is_object) throw damaged("it must be an object");
    levels_.push_back({is_object, "", {}});
  }

  // A value that the format allows but that does not matter. The config and each weight must be
  // objects, however: fields are attributed to the last weight.
  void refuse_other() const {
    if (levels_.empty() || is_weight()) throw damaged("a weight must be an object");
    if (levels_.size() == 1 && at(0, "config")) throw damaged("its config must be an object");
    if (in_shape()) {
      throw WeightsError(WeightsErrorCode::Unsupported, "has a shape that is not a number")
          .in_tensor(weights_.back().name);
    }
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
  std::vector<Pt2Weight> weights;
  ConfigHandler handler(weights, budget);
  io::parse_json(text, "its list of weights", handler);
  if (!handler.has_config()) throw damaged("it lacks its object config");
  return weights;
}

}  // namespace posenc::io
