// Records what monitors see while a compiler runs. Put into an instrumented copy by
// `reprise instrument`; needs C++11 and the standard library.
//
// Inserted statements call reprise_monitor::check. It never throws and never divides by zero.
// Integers are computed in 128 bits, so that they do not wrap.
//
// A verdict is one of satisfied, violated, unknown (a value is no number: an expression, say), error
// (a division by zero, an overflow) and, at the end of a run, not_reached.
//
// Environment:
//   REPRISE_MONITOR_OUT  a file to append to: when a verdict occurs for the first time, a line
//                        {"kind": "first", ...}; when the process ends, its record
//                        {"kind": "run", ...}. A process that died leaves the first lines.
//   REPRISE_MONITOR      "raise": say so and abort where a condition is false; "off": do nothing.
#ifndef REPRISE_MONITOR_HPP_
#define REPRISE_MONITOR_HPP_

#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <map>
#include <mutex>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#if defined(_WIN32)
#include <process.h>
#else
#include <unistd.h>
#endif

namespace reprise_monitor {

static const char* const kChecks[] = {/*CHECKS*/ nullptr};

// A number, or why there is none.
class Value {
 public:
  enum Kind { kInteger, kReal, kUnknown, kError };
#if defined(__SIZEOF_INT128__)
  __extension__ typedef __int128 Wide;
#else
  typedef long long Wide;
#endif

  static Value integer(Wide value) { return Value(kInteger, value, 0.0); }
  static Value real(double value) { return Value(kReal, 0, value); }
  static Value unknown() { return Value(kUnknown, 0, 0.0); }
  static Value error() { return Value(kError, 0, 0.0); }

  Kind kind() const { return kind_; }
  Wide whole() const { return whole_; }
  double number() const { return kind_ == kInteger ? static_cast<double>(whole_) : real_; }
  bool known() const { return kind_ == kInteger || kind_ == kReal; }

  // As JSON. What JSON readers would round is text.
  std::string shown() const {
    if (kind_ == kUnknown) return "\"<not a number>\"";
    if (kind_ == kError) return "\"<error>\"";
    if (kind_ == kReal) {
      char text[40];
      std::snprintf(text, sizeof text, std::isfinite(real_) ? "%.17g" : "\"%g\"", real_);
      return text;
    }
    std::string digits;
    Wide rest = whole_;
    do {
      int digit = static_cast<int>(rest % 10);
      digits.insert(digits.begin(), static_cast<char>('0' + (digit < 0 ? -digit : digit)));
      rest /= 10;
    } while (rest != 0);
    if (whole_ < 0) digits.insert(digits.begin(), '-');
    const Wide exact = static_cast<Wide>(1) << 53;
    return whole_ > exact || whole_ < -exact ? "\"" + digits + "\"" : digits;
  }

 private:
  Value(Kind kind, Wide whole, double real) : kind_(kind), whole_(whole), real_(real) {}
  Kind kind_;
  Wide whole_;
  double real_;
};

inline Value failed(const Value& a, const Value& b) {
  return a.kind() == Value::kError || b.kind() == Value::kError ? Value::error() : Value::unknown();
}
inline bool both_whole(const Value& a, const Value& b) {
  return a.kind() == Value::kInteger && b.kind() == Value::kInteger;
}

inline Value operator+(const Value& a, const Value& b) {
  if (!a.known() || !b.known()) return failed(a, b);
  if (!both_whole(a, b)) return Value::real(a.number() + b.number());
#if defined(__GNUC__)
  Value::Wide sum;
  return __builtin_add_overflow(a.whole(), b.whole(), &sum) ? Value::error() : Value::integer(sum);
#else
  return Value::integer(a.whole() + b.whole());
#endif
}
inline Value operator-(const Value& a, const Value& b) {
  if (!a.known() || !b.known()) return failed(a, b);
  if (!both_whole(a, b)) return Value::real(a.number() - b.number());
#if defined(__GNUC__)
  Value::Wide sum;
  return __builtin_sub_overflow(a.whole(), b.whole(), &sum) ? Value::error() : Value::integer(sum);
#else
  return Value::integer(a.whole() - b.whole());
#endif
}
inline Value operator*(const Value& a, const Value& b) {
  if (!a.known() || !b.known()) return failed(a, b);
  if (!both_whole(a, b)) return Value::real(a.number() * b.number());
#if defined(__GNUC__)
  Value::Wide sum;
  return __builtin_mul_overflow(a.whole(), b.whole(), &sum) ? Value::error() : Value::integer(sum);
#else
  return Value::integer(a.whole() * b.whole());
#endif
}
// Rounds down between integers, as the rule language has it.
inline Value operator/(const Value& a, const Value& b) {
  if (!a.known() || !b.known()) return failed(a, b);
  if (b.number() == 0.0) return Value::error();
  if (!both_whole(a, b)) return Value::real(a.number() / b.number());
  Value::Wide quotient = a.whole() / b.whole();
  if (a.whole() % b.whole() != 0 && (a.whole() < 0) != (b.whole() < 0)) quotient -= 1;
  return Value::integer(quotient);
}
// The remainder has the divisor's sign.
inline Value operator%(const Value& a, const Value& b) {
  if (!a.known() || !b.known()) return failed(a, b);
  if (b.number() == 0.0) return Value::error();
  if (!both_whole(a, b)) {
    return Value::real(a.number() - b.number() * std::floor(a.number() / b.number()));
  }
  Value::Wide rest = a.whole() % b.whole();
  if (rest != 0 && (rest < 0) != (b.whole() < 0)) rest += b.whole();
  return Value::integer(rest);
}

// True, false, or neither.
class Truth {
 public:
  enum Kind { kFalse, kTrue, kUnknown, kError };
  explicit Truth(Kind kind) : kind_(kind) {}
  explicit Truth(bool value) : kind_(value ? kTrue : kFalse) {}
  Kind kind() const { return kind_; }

 private:
  Kind kind_;
};

inline Truth undecided(const Value& a, const Value& b) {
  return Truth(failed(a, b).kind() == Value::kError ? Truth::kError : Truth::kUnknown);
}
inline Truth equal(const Value& a, const Value& b) {
  if (!a.known() || !b.known()) return undecided(a, b);
  return Truth(both_whole(a, b) ? a.whole() == b.whole() : a.number() == b.number());
}
inline Truth less(const Value& a, const Value& b) {
  if (!a.known() || !b.known()) return undecided(a, b);
  return Truth(both_whole(a, b) ? a.whole() < b.whole() : a.number() < b.number());
}
inline Truth negated(const Truth& a) {
  if (a.kind() == Truth::kTrue) return Truth(false);
  return a.kind() == Truth::kFalse ? Truth(true) : a;
}
inline Truth all(std::initializer_list<Truth> parts) {
  Truth::Kind kind = Truth::kTrue;
  for (const Truth& part : parts) {
    if (part.kind() == Truth::kFalse) return part;
    if (part.kind() == Truth::kError || kind == Truth::kTrue) kind = part.kind();
  }
  return Truth(kind);
}
inline Truth any(std::initializer_list<Truth> parts) {
  Truth::Kind kind = Truth::kFalse;
  for (const Truth& part : parts) {
    if (part.kind() == Truth::kTrue) return part;
    if (part.kind() == Truth::kError || kind == Truth::kFalse) kind = part.kind();
  }
  return Truth(kind);
}

template <class T>
using Plain = typename std::remove_cv<typename std::remove_reference<T>::type>::type;
template <class T>
using IsNumber =
    std::integral_constant<bool, std::is_arithmetic<Plain<T>>::value || std::is_enum<Plain<T>>::value>;

template <class T, class Enable = void>
struct Read {
  typedef const T& Argument;
  static Value read(Argument) { return Value::unknown(); }
};
template <class T>
struct Read<T, typename std::enable_if<std::is_integral<T>::value || std::is_enum<T>::value>::type> {
  typedef T Argument;  // by value: a constant without a definition must not be referred to
  static Value read(T value) { return Value::integer(static_cast<Value::Wide>(value)); }
};
template <class T>
struct Read<T, typename std::enable_if<std::is_floating_point<T>::value>::type> {
  typedef T Argument;
  static Value read(T value) { return Value::real(static_cast<double>(value)); }
};

// What `expression` is: of<decltype(expression)>(expression).
template <class T>
Value of(typename Read<Plain<T>>::Argument value) {
  return Read<Plain<T>>::read(value);
}
inline Value num(long long value) { return Value::integer(value); }
inline Value real(double value) { return Value::real(value); }

inline Value absolute(const Value& a) {
  return less(a, num(0)).kind() == Truth::kTrue ? num(0) - a : a;
}
inline Value least(std::initializer_list<Value> values) {
  Value found = *values.begin();
  for (const Value& value : values) {
    if (!value.known() || !found.known()) return failed(value, found);
    if (less(value, found).kind() == Truth::kTrue) found = value;
  }
  return found;
}
inline Value greatest(std::initializer_list<Value> values) {
  Value found = *values.begin();
  for (const Value& value : values) {
    if (!value.known() || !found.known()) return failed(value, found);
    if (less(found, value).kind() == Truth::kTrue) found = value;
  }
  return found;
}
typedef std::vector<std::pair<const char*, Value>> Seen;

class Recorder {
 public:
  static Recorder& instance() {
    static Recorder* recorder = new Recorder();  // never destroyed: checks may run at exit
    return *recorder;
  }

  void declare(const char* const* keys) {
    const std::lock_guard<std::mutex> hold(mutex_);
    for (; *keys != nullptr; ++keys) checks_[*keys];
  }

  void check(const char* key, const Truth& truth, const Seen& seen) {
    if (mode_ == "off") return;
    static const char* const names[] = {"violated", "satisfied", "unknown", "error"};
    const char* verdict = names[truth.kind()];
    const std::lock_guard<std::mutex> hold(mutex_);
    Entry& entry = checks_[key];
    if (entry.counts[verdict]++ == 0) {
      std::string values = "{";
      for (const auto& pair : seen) {
        if (values.size() > 1) values += ", ";
        values += quoted(pair.first) + ": " + pair.second.shown();
      }
      entry.first[verdict] = values + "}";
      write("{\"kind\": \"first\", \"run\": \"" + run_ + "\", \"label\": null, \"check\": " +
            quoted(key) + ", \"verdict\": \"" + verdict + "\", \"values\": " +
            entry.first[verdict] + ", \"late\": false}\n");
    }
    if (truth.kind() == Truth::kFalse && mode_ == "raise") {
      std::fprintf(stderr, "reprise_monitor: %s is violated: %s\n", key,
                   entry.first[verdict].c_str());
      std::abort();
    }
  }

 private:
  struct Entry {
    std::map<std::string, unsigned long long> counts;
    std::map<std::string, std::string> first;
  };

  Recorder() {
    const char* mode = std::getenv("REPRISE_MONITOR");
    const char* out = std::getenv("REPRISE_MONITOR_OUT");
    mode_ = mode == nullptr ? "" : mode;
    out_ = out == nullptr ? "" : out;
#if defined(_WIN32)
    const long process = _getpid();
#else
    const long process = static_cast<long>(getpid());
#endif
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    run_ = std::to_string(process) + "-" + std::to_string(static_cast<long long>(now.count()));
    if (mode_ != "off") std::atexit(finish);
  }

  static void finish() { instance().record(); }

  void record() {
    const std::lock_guard<std::mutex> hold(mutex_);
    std::string line = "{\"kind\": \"run\", \"run\": \"" + run_ +
                       "\", \"label\": null, \"language\": \"c++\", \"checks\": {";
    bool first = true;
    for (const auto& item : checks_) {
      const Entry& entry = item.second;
      static const char* const worst_first[] = {"violated", "error", "unknown", "satisfied"};
      std::string verdict = "not_reached", counts, values;
      for (const char* name : worst_first) {
        if (entry.counts.count(name) == 0) continue;
        if (verdict == "not_reached") verdict = name;
        counts += std::string(counts.empty() ? "" : ", ") + quoted(name) + ": " +
                  std::to_string(entry.counts.at(name));
        values += std::string(values.empty() ? "" : ", ") + quoted(name) + ": " +
                  entry.first.at(name);
      }
      line += std::string(first ? "" : ", ") + quoted(item.first) + ": {\"verdict\": \"" + verdict +
              "\", \"counts\": {" + counts + "}";
      if (!values.empty()) line += ", \"first\": {" + values + "}";
      line += "}";
      first = false;
    }
    write(line + "}}\n");
  }

  // One write a line: several processes may append to the file.
  void write(const std::string& line) {
    if (out_.empty()) return;
    std::FILE* file = std::fopen(out_.c_str(), "ab");
    if (file == nullptr) return;
    std::setvbuf(file, nullptr, _IOFBF, line.size() + 1);
    std::fwrite(line.data(), 1, line.size(), file);
    std::fclose(file);
  }

  static std::string quoted(const std::string& text) {
    std::string result = "\"";
    for (char c : text) {
      if (c == '"' || c == '\\') result += '\\';
      result += c;
    }
    return result + "\"";
  }

  std::mutex mutex_;
  std::map<std::string, Entry> checks_;
  std::string mode_, out_, run_;
};

namespace {
// Every check of the copy has a verdict, reached or not, once one translation unit is loaded.
struct Declared {
  Declared() { Recorder::instance().declare(kChecks); }
} const declared;
}  // namespace

inline void check(const char* key, const Truth& truth, const Seen& seen) noexcept {
  try {
    Recorder::instance().check(key, truth, seen);
  } catch (...) {  // no memory: the compiler goes on
  }
}

}  // namespace reprise_monitor

#endif  // REPRISE_MONITOR_HPP_
