package com.acme.leaveservice;

import com.acme.hrdb.LeaveBalance;
import com.acme.hrdb.service.LeaveBalanceService;
import org.springframework.beans.factory.annotation.Autowired;

/** Tells how many days of leave an employee has left. */
@ExposeToClient
public class LeaveService {

    private static final int CARRY_OVER_LIMIT = 5;

    @Autowired
    private LeaveBalanceService balances;

    public int getRemainingDays(int employeeId, int year) {
        int left = daysLeft(employeeId, year);
        int carried = Math.min(CARRY_OVER_LIMIT, Math.max(0, daysLeft(employeeId, year - 1)));
        return left + carried;
    }

    private int daysLeft(int employeeId, int year) {
        LeaveBalance balance = balances.findByEmployeeAndYear(employeeId, year);
        if (balance == null) {
            throw new IllegalArgumentException("no balance {" + employeeId + ", " + year);
        }
        return balance.getDaysGranted() - balance.getDaysTaken();
    }
}
