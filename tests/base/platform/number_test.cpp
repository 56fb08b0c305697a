#include "base/platform/number.h"

#include <gtest/gtest.h>
#include <locale.h>
#include <stdlib.h>

#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "support/temp_dir.h"

namespace posenc::platform {
namespace {

#ifdef __GLIBC__
// A locale of numbers for glibc, whose decimal point is a comma: containers rarely have one. The
// format is that of localedef: a magic number, the number of fields, where each begins, the fields.
void write_comma_locale(const std::string& folder) {
  std::filesystem::create_directories(folder + "/comma");
  const std::string fields = std::string(",\0.\0\x7f\0\0\0", 8) + std::string(",\0\0\0.\0\0\0", 8) +
                             std::string("UTF-8\0", 6);
  constexpr uint32_t kHeader = 8 * sizeof(uint32_t);
  const std::array<uint32_t, 8> header = {0x20031115U ^ LC_NUMERIC,
                                          6,
                                          kHeader,
                                          kHeader + 2,
                                          kHeader + 4,
                                          kHeader + 8,
                                          kHeader + 12,
                                          kHeader + 16};
  std::ofstream file(folder + "/comma/LC_NUMERIC", std::ios::binary);
  file.write(reinterpret_cast<const char*>(header.data()), sizeof header);
  file << fields;
}
#endif

/// While one is alive, the program's decimal point is a comma.
class CommaLocale {
 public:
  CommaLocale() {
#ifdef __GLIBC__
    write_comma_locale(folder_.path().string());
    ::setenv("LOCPATH", folder_.path().c_str(), 1);
    found_ = ::setlocale(LC_NUMERIC, "comma") != nullptr;
    ::unsetenv("LOCPATH");
#else
    found_ = ::setlocale(LC_NUMERIC, "de_DE.UTF-8") != nullptr;
#endif
  }
  ~CommaLocale() { ::setlocale(LC_NUMERIC, "C"); }
  CommaLocale(const CommaLocale&) = delete;
  CommaLocale& operator=(const CommaLocale&) = delete;

  bool found() const { return found_; }

 private:
  testing::TempDir folder_;
  bool found_ = false;
};

TEST(ParseNumber, ReadsWholeNumbers) {
  EXPECT_EQ(parse_number<int64_t>("-9223372036854775808"), INT64_MIN);
  EXPECT_EQ(parse_number<int>("0"), 0);
  for (const char* text : {"", " 1", "1 ", "+1", "1.0", "0x1", "one", "9223372036854775808"}) {
    EXPECT_EQ(parse_number<int64_t>(text), std::nullopt) << text;
  }
  EXPECT_EQ(parse_number<int>("2147483648"), std::nullopt);
}

TEST(ParseNumber, ReadsDoubles) {
  EXPECT_EQ(parse_number<double>("0.1"), 0.1);
  EXPECT_EQ(parse_number<double>("-1e+4"), -10000.0);
  EXPECT_EQ(parse_number<double>(".5"), 0.5);
  EXPECT_EQ(parse_number<double>("5."), 5.0);
  EXPECT_EQ(parse_number<double>("1e-310"), 1e-310) << "a subnormal number has a value";
  EXPECT_EQ(parse_number<double>("-inf"), -HUGE_VAL);
  EXPECT_TRUE(std::isnan(parse_number<double>("nan").value()));
  const auto zero = parse_number<double>("-0");
  EXPECT_TRUE(zero == 0.0 && std::signbit(*zero));
  EXPECT_EQ(parse_number<double>(std::string_view("2.5, 7", 3)), 2.5) << "a part of a text";
}

TEST(ParseNumber, RefusesWhatIsNoNumber) {
  for (const char* text : {"", "-", ".", "e5", "1e", "1x", "1 ", "1,5", "1.5.2", "--1", "one"}) {
    EXPECT_EQ(parse_number<double>(text), std::nullopt) << text;
  }
  EXPECT_EQ(parse_number<double>(std::string_view("1\0", 2)), std::nullopt) << "a zero byte";
}

TEST(ParseNumber, RefusesWhatOnlyStrtodReads) {
  for (const char* text : {" 1", "\t1", "\n1", "+1", "+inf", "0x1p3", "0X10", "-0x1", "nan(1)",
                           "nan()", "-nan(0x1)"}) {
    EXPECT_EQ(parse_number<double>(text), std::nullopt) << text;
  }
}

TEST(ParseNumber, RefusesWhatIsOutOfRange) {
  for (const char* text : {"1e309", "-1e309", "1e-400", "-1e-400"}) {
    EXPECT_EQ(parse_number<double>(text), std::nullopt) << text;
  }
}

TEST(ParseNumber, DoesNotDependOnTheLocale) {
  const CommaLocale locale;
  ASSERT_TRUE(locale.found());
  ASSERT_EQ(std::strtod("1,5", nullptr), 1.5) << "the locale has no decimal comma";
  EXPECT_EQ(parse_number<double>("1.5"), 1.5);
  EXPECT_EQ(parse_number<double>("1,5"), std::nullopt);
}

#ifdef __cpp_lib_to_chars
TEST(ParseNumber, ReadsEveryDoubleLikeFromChars) {
  std::mt19937_64 random(7);
  for (int i = 0; i < 20000; ++i) {
    const auto value = std::bit_cast<double>(random());
    std::array<char, 512> text{};
    const auto format = i % 2 ? std::chars_format::scientific : std::chars_format::general;
    auto written = std::to_chars(text.data(), text.data() + text.size(), value, format);
    if (i % 3 == 0)
      written = std::to_chars(text.data(), text.data() + text.size(), value, format, 5);
    const std::string_view view(text.data(), static_cast<std::size_t>(written.ptr - text.data()));
    double expected = 0;
    const auto parsed = std::from_chars(view.data(), view.data() + view.size(), expected);
    const auto found = parse_number<double>(view);
    if (parsed.ec != std::errc()) {
      EXPECT_EQ(found, std::nullopt) << view;
      continue;
    }
    ASSERT_TRUE(found.has_value()) << view;
    EXPECT_TRUE(std::bit_cast<uint64_t>(*found) == std::bit_cast<uint64_t>(expected) ||
                (std::isnan(*found) && std::isnan(expected)))
        << view;
  }
}
#endif

}  // namespace
}  // namespace posenc::platform
