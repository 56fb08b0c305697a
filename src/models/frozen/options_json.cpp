#include "models/frozen/options_json.h"

#include <c10/util/Exception.h>

#include <cctype>
#include <cmath>
#include <limits>
#include <set>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>

#include "core/print_fields.h"
#include "posenc/inference/freeze_options.h"
#include "posenc/models/classifier.h"
#include "posenc/models/decoder.h"
#include "posenc/transformer/transformer.h"

namespace posenc {
namespace {

using Json = nlohmann::json;

constexpr const char *kNoScale = "none", *kSqrtDim = "sqrt_dim";

template <typename T>
constexpr bool kIsSaved = !std::is_same_v<T, encoder::Origin>;

// --- writing ------------------------------------------------------------------------------------

template <typename T>
Json json_value(const std::optional<T>& value);
template <typename T>
Json json_value(const std::vector<T>& values);
template <typename... T>
Json json_value(const std::variant<T...>& value);
template <typename T>
Json json_value(const T& value) {
  if constexpr (fields::IsListed<T>::value) {
    return json_of(value);
  } else if constexpr (std::is_enum_v<T>) {
    return std::string(fields::name_of_enumerator(value));
  } else if constexpr (std::is_same_v<T, Scale>) {
    if (value.is_none()) return kNoScale;
    return value.is_sqrt_dim() ? Json(kSqrtDim) : json_value(value.factor(1));
  } else if constexpr (std::is_floating_point_v<T>) {
    if (!std::isfinite(value)) return std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf";
    return value;
  } else if constexpr (std::is_empty_v<T>) {
    return Json::object();
  } else {
    return value;
  }
}
template <typename T>
Json json_value(const std::optional<T>& value) {
  return value ? json_value(*value) : Json();
}
template <typename T>
Json json_value(const std::vector<T>& values) {
  Json all = Json::array();
  for (std::size_t i = 0; i < values.size(); ++i) all.push_back(json_value<T>(values[i]));
  return all;
}
template <typename... T>
Json json_value(const std::variant<T...>& value) {
  return std::visit(
      []<typename Own>(const Own& own) {
        return Json{{std::string(fields::type_name<Own>()), json_value(own)}};
      },
      value);
}

// Calls visit(name, value) for each field that is saved.
template <typename T, typename Visit>
void for_each_field(const T& object, const Visit& visit) {
  const auto each = [&](const char* names, const auto&... values) {
    std::size_t index = 0;
    const auto one = [&]<typename Value>(const Value& value) {
      const std::size_t own = index++;
      if constexpr (kIsSaved<Value>) visit(fields::field_name(names, own), value);
    };
    (one(values), ...);
  };
  fields::List<T>::visit(object, each);
  if constexpr (fields::HasTrainingFields<T>::value) object.visit_training_fields(each);
}

// --- reading ------------------------------------------------------------------------------------

template <typename T>
T blank();

// Becomes a blank argument of T's constructors, but those that copy.
template <typename T>
struct Argument {
  template <typename U>
    requires(!std::is_same_v<U, T>)
  operator U() const {
    return blank<U>();
  }
};

// An object whose fields are all set afterwards.
template <typename T>
T blank() {
  if constexpr (std::is_arithmetic_v<T>) {
    return static_cast<T>(1);
  } else if constexpr (std::is_same_v<T, Scale>) {
    return Scale::None;
  } else if constexpr (std::is_default_constructible_v<T>) {
    return T{};
  } else if constexpr (std::is_constructible_v<T, Argument<T>>) {
    return T(Argument<T>());
  } else if constexpr (std::is_constructible_v<T, Argument<T>, Argument<T>>) {
    return T(Argument<T>(), Argument<T>());
  } else {
    return T(Argument<T>(), Argument<T>(), Argument<T>());
  }
}

[[noreturn]] void refuse_option(const std::string& where, const std::string& rule,
                                const Json& got) {
  TORCH_CHECK_VALUE(false, "option ", where, " must be ", rule, ". Got ",
                    got.dump(-1, ' ', true, Json::error_handler_t::replace));
}

// An enumerator is an identifier: other values have no name.
template <typename T>
void read_enumerator(const Json& json, T& value, const std::string& where) {
  constexpr int kMostEnumerators = 32;
  if (!json.is_string()) refuse_option(where, "a name", json);
  const auto name = json.get<std::string>();
  for (int i = 0; i < kMostEnumerators && !name.empty() && std::isalpha(name.front()) != 0; ++i) {
    value = static_cast<T>(i);
    const std::string own(fields::name_of_enumerator(value));
    if (own == name && own.find(')') == std::string::npos) return;
  }
  refuse_option(where, "a name that it has", json);
}

template <typename T>
void read_float(const Json& json, T& value, const std::string& where) {
  constexpr T kInfinity = std::numeric_limits<T>::infinity();
  if (json.is_number()) {
    value = json.get<T>();
  } else if (json == "inf") {
    value = kInfinity;
  } else if (json == "-inf") {
    value = -kInfinity;
  } else if (json == "nan") {
    value = std::numeric_limits<T>::quiet_NaN();
  } else {
    refuse_option(where, "a number", json);
  }
}

template <typename T>
void read_option(const Json& json, std::optional<T>& value, const std::string& where);
template <typename T>
void read_option(const Json& json, std::vector<T>& values, const std::string& where);
template <typename... T>
void read_option(const Json& json, std::variant<T...>& value, const std::string& where);
template <typename T>
void read_fields(const Json& json, T& object, const std::string& where);
template <typename T>
void read_option(const Json& json, T& value, const std::string& where) {
  if constexpr (fields::IsListed<T>::value) {
    read_fields(json, value, where);
  } else if constexpr (std::is_enum_v<T>) {
    read_enumerator(json, value, where);
  } else if constexpr (std::is_same_v<T, Scale>) {
    double factor = 1.0;
    if (json != kNoScale && json != kSqrtDim) read_float(json, factor, where);
    value = json == kNoScale ? Scale::None : json == kSqrtDim ? Scale::SqrtDim : Scale(factor);
  } else if constexpr (std::is_same_v<T, bool>) {
    if (!json.is_boolean()) refuse_option(where, "true or false", json);
    value = json.get<bool>();
  } else if constexpr (std::is_floating_point_v<T>) {
    read_float(json, value, where);
  } else if constexpr (std::is_integral_v<T>) {
    if (!json.is_number_integer()) refuse_option(where, "an integer", json);
    const bool fits = json.is_number_unsigned() ? std::in_range<T>(json.get<uint64_t>())
                                                : std::in_range<T>(json.get<int64_t>());
    if (!fits) refuse_option(where, "an integer of its type", json);
    value = json.get<T>();
  } else if constexpr (std::is_same_v<T, std::string>) {
    if (!json.is_string()) refuse_option(where, "a text", json);
    value = json.get<std::string>();
  } else {
    static_assert(std::is_empty_v<T>);
    if (!json.is_object() || !json.empty()) refuse_option(where, "{}", json);
  }
}
template <typename T>
void read_option(const Json& json, std::optional<T>& value, const std::string& where) {
  value.reset();
  if (!json.is_null()) read_option(json, value.emplace(blank<T>()), where);
}
template <typename T>
void read_option(const Json& json, std::vector<T>& values, const std::string& where) {
  if (!json.is_array()) refuse_option(where, "a list", json);
  values.clear();
  for (const Json& item : json) {
    T value = blank<T>();
    read_option(item, value, where + "[" + std::to_string(values.size()) + "]");
    values.push_back(std::move(value));
  }
}
template <typename... T>
void read_option(const Json& json, std::variant<T...>& value, const std::string& where) {
  if (!json.is_object() || json.size() != 1) refuse_option(where, "one alternative", json);
  const std::string& name = json.begin().key();
  const auto read_if = [&]<typename Own>(const Own*) {
    if (name != fields::type_name<Own>()) return false;
    Own own = blank<Own>();
    read_option(json.begin().value(), own, where + "." + name);
    value = std::move(own);
    return true;
  };
  if (!(read_if(static_cast<const T*>(nullptr)) || ...))
    refuse_option(where, "one that it has", json);
}

template <typename T>
void read_fields(const Json& json, T& object, const std::string& where) {
  if (!json.is_object()) refuse_option(where.empty() ? "object" : where, "an object", json);
  const std::string stem = where.empty() ? "" : where + ".";
  std::set<std::string> known;
  for_each_field(object, [&]<typename Value>(const std::string& name, const Value& value) {
    known.insert(name);
    const auto found = json.find(name);
    TORCH_CHECK_VALUE(found != json.end(), "option ", stem, name,
                      " must be given. Got no such option");
    read_option(*found, const_cast<Value&>(value), stem + name);  // `object` is not const
  });
  for (const auto& [name, value] : json.items())
    TORCH_CHECK_VALUE(known.contains(name), "option ", stem, name,
                      " must be one of this version of posenc, which has no such option");
}

}  // namespace

template <typename Options>
nlohmann::json json_of(const Options& options) {
  Json json = Json::object();
  for_each_field(options, [&]<typename Value>(const std::string& name, const Value& value) {
    json[name] = json_value(value);
  });
  return json;
}

template <typename Options>
Options options_from(const nlohmann::json& json) {
  Options options = blank<Options>();
  read_fields(json, options, "");
  return options;
}

template nlohmann::json json_of(const FreezeOptions&);
template nlohmann::json json_of(const EncoderOptions&);
template nlohmann::json json_of(const ClassifierOptions&);
template nlohmann::json json_of(const DecoderOptions&);
template nlohmann::json json_of(const TransformerOptions&);
template nlohmann::json json_of(const TransformerEncoderOptions&);
template FreezeOptions options_from(const nlohmann::json&);
template EncoderOptions options_from(const nlohmann::json&);
template ClassifierOptions options_from(const nlohmann::json&);
template DecoderOptions options_from(const nlohmann::json&);
template TransformerOptions options_from(const nlohmann::json&);
template TransformerEncoderOptions options_from(const nlohmann::json&);

}  // namespace posenc
